import http from 'node:http';
import { pipeline, env } from '@huggingface/transformers';

env.allowRemoteModels = false;
env.localModelPath = process.argv[2];
const extract = await pipeline('feature-extraction', process.argv[3], { dtype: 'fp32', device: 'cpu' });
const server = http.createServer(async (request, response) => {
  if (request.method === 'GET') return response.end(JSON.stringify({ data: [{ id: process.argv[3] }] }));
  let body = '';
  for await (const part of request) body += part;
  const given = JSON.parse(body).input;
  const texts = typeof given === 'string' ? [given] : given;
  const vectors = (await extract(texts, { pooling: 'mean', normalize: true })).tolist();
  response.setHeader('Content-Type', 'application/json');
  response.end(JSON.stringify({ data: vectors.map((embedding, index) => ({ index, embedding })) }));
});
server.listen(Number(process.argv[4]), '127.0.0.1', () => console.log('ready'));
