/* A wall clock that a test can set back: LD_PRELOAD this, and the seconds in the file of CLOCK_OFFSET_FILE (one int64)
 * are added to what the process reads, now and whenever they change. Durations and waits go by the monotonic clock,
 * which is left alone, as on a machine whose clock is set. (libfaketime 0.9.10 moves that one too: sleeping fails.) */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int64_t offset(void) {
    static volatile int64_t *seconds;
    if (!seconds) {
        const char *path = getenv("CLOCK_OFFSET_FILE");
        int file = path ? open(path, O_RDONLY) : -1;
        void *place = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
        if (file >= 0) close(file);
        if (place == MAP_FAILED) return 0;
        seconds = place;
    }
    return *seconds;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += offset();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    (void)zone;
    int failed = clock_gettime(CLOCK_REALTIME, &precise);
    if (!failed && now) {
        now->tv_sec = precise.tv_sec;
        now->tv_usec = precise.tv_nsec / 1000;
    }
    return failed;
}

time_t time(time_t *place) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (place) *place = now.tv_sec;
    return now.tv_sec;
}
