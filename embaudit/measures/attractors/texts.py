"""Texts that stand in real indexes and answer nothing, by kind. They are our own, in English."""

from __future__ import annotations

KINDS: dict[str, tuple[str, ...]] = {
    "headers and navigation": (
        "Home | About us | Services | Blog | Contact",
        "Skip to main content Menu Search Sign in My account Basket (0)",
        "You are here: Home > Help > Frequently asked questions > Article",
        "Previous page 1 2 3 4 5 … 27 Next page",
        "Share this article: Facebook X LinkedIn WhatsApp E-mail Print",
        "Related articles Most read Latest news See all topics",
        "Table of contents Introduction Background Results Conclusion References",
    ),
    "legal and cookie notices": (
        "We use cookies to improve your experience. By continuing to use this site you agree to our use of cookies. "
        "Accept all Reject all Manage preferences",
        "© 2024 All rights reserved. Terms of use Privacy policy Accessibility Imprint",
        "This e-mail and its attachments are confidential and intended solely for the addressee. If you have received "
        "it in error, please delete it.",
        "The information on this page is provided as is, without warranty of any kind, and does not constitute advice.",
        "Subscribe to our newsletter and never miss an update. You can unsubscribe at any time.",
        "By submitting this form you consent to the processing of your personal data under our privacy policy.",
    ),
    "error pages": (
        "404 Not Found. The page you are looking for does not exist or has been moved.",
        "500 Internal Server Error. Something went wrong on our side. Please try again later.",
        "Access denied. You do not have permission to view this page.",
        "Please enable JavaScript and cookies in your browser to continue.",
        "Your session has expired. Please log in again.",
        "Checking your browser before you access this site. This may take a few seconds.",
        "No results found. Try other search terms or remove some filters.",
    ),
    "one word or number": ("Yes", "Introduction", "42", "Summary", "None", "2019", "Untitled", "page 7"),
    "punctuation and markup": (
        "...",
        "-----------------------------",
        "* * *",
        "<br/><br/>&nbsp;&nbsp;</div></div>",
        "{{title}} {{body}}",
        "?!?!",
        "[image] [image] [image]",
    ),
    "placeholder text": (
        "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore "
        "magna aliqua.",
        "Your text goes here. Click to edit this paragraph and tell your visitors more.",
        "Test test test 123. This is a test document, please ignore.",
        "Sample text. Replace this text with your own content.",
        "TODO: write this section",
        "foo bar baz qux",
    ),
    "tables of numbers": (
        "12.4 13.1 9.8 11.0 10.7 14.2 8.9 12.8 13.3 10.1 9.4 11.7",
        "Q1 1,204 Q2 1,318 Q3 1,287 Q4 1,455 Total 5,264",
        "2020-01-04 0.31 2020-01-11 0.29 2020-01-18 0.35 2020-01-25 0.33",
        "| id | value | min | max |\n| 1 | 0.5 | 0.1 | 0.9 |\n| 2 | 0.7 | 0.2 | 0.8 |",
        "192.168.0.1 10.0.0.254 172.16.4.9 8080 443 22",
        "9a3f1c77e0b24d58 51c0de88aa73f914 0x7ffdc0de",
    ),
    "greetings and open questions": (
        "Hello! How can I help you today?",
        "Thank you for your question. We will get back to you as soon as possible.",
        "What is it, how does it work and why does it matter? Everything you need to know.",
        "Does anybody know the answer to this? Thanks in advance for any help!",
        "Frequently asked questions: who, what, when, where, why and how.",
        "I have a question about this. Can someone please explain?",
        "Good question! Here is the answer that you have been looking for.",
    ),
}
