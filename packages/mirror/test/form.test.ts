// Bodies that anybody may send to the hub's mirror, through a real server.
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { readForm } from '../src/form.ts'

const JSON_TYPE = 'application/json'
const FORM_TYPE = 'application/x-www-form-urlencoded'
let stop: () => void
let url: string
beforeAll(async () => {
  const server = createServer((request, response) => {
    readForm(request).then(
      (paths) => response.end(JSON.stringify(paths ?? null)),
      () => response.destroy()
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  stop = () => server.close().closeAllConnections()
})
afterAll(() => stop())

async function read(type: string, body: string): Promise<unknown> {
  const answer = await fetch(url, { method: 'POST', headers: { 'content-type': type }, body })
  return answer.json()
}

it.each([
  [JSON_TYPE, '{"paths":["a","b/c","a"],"expand":true}', ['a', 'b/c']],
  [FORM_TYPE, 'expand=True&paths=a&paths=b%2Fc+d&paths=a&', ['a', 'b/c d']],
  [FORM_TYPE, 'xpaths=a&paths', []],
  [FORM_TYPE, 'paths=%zz', null],
  [JSON_TYPE, '{"paths":[1]}', null],
  [JSON_TYPE, '{"paths":"a"}', null],
  [JSON_TYPE, '{"paths":["a"],"x":[[1]]}', ['a']],
  [JSON_TYPE, '{"paths":["a"],"x":[[[[1]]]]}', null],
  [JSON_TYPE, '', null]
])('%s %s', async (type, body, paths) => {
  expect(await read(type, body)).toEqual(paths)
})

it('accepts a thousand paths, and few other strings', async () => {
  const paths = Array.from({ length: 1_001 }, (_, i) => `p${i}`)
  const others = Array.from({ length: 1_020 }, (_, i) => `"k${i}":1`).join(',')
  expect(await read(JSON_TYPE, JSON.stringify({ paths: paths.slice(1) }))).toHaveLength(1_000)
  expect(await read(JSON_TYPE, JSON.stringify({ paths }))).toBeNull()
  expect(await read(FORM_TYPE, paths.map((path) => `paths=${path}`).join('&'))).toBeNull()
  expect(await read(JSON_TYPE, `{"paths":["a"],${others}}`)).toBeNull()
})

it('refuses an oversized form after its first part, not after all of it', async () => {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  const answer = new Promise<Buffer>((resolve, reject) => socket.once('data', resolve).once('error', reject))
  socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n${'a&'.repeat(2_000)}`)
  expect(`${await answer}`).toMatch(/^HTTP\/1.1 200 .*null$/s)
  socket.destroy()
})

it.each<[string, string, string]>([
  ['fields', FORM_TYPE, 'a&'.repeat(130_000)],
  ['paths in a form', FORM_TYPE, 'paths=&'.repeat(37_000)],
  ['strings', JSON_TYPE, `{"paths":[${'"",'.repeat(80_000)}""]}`],
  ['keys', JSON_TYPE, `{${Array.from({ length: 20_000 }, (_, i) => `"k${i}":1`).join(',')}}`],
  ['levels', JSON_TYPE, `${'['.repeat(130_000)}${']'.repeat(130_000)}`],
  ['bytes', FORM_TYPE, `paths=${'a'.repeat(300_000)}`]
])('too many %s cost little', async (_, type, body) => {
  await read(type, 'x')
  const before = process.cpuUsage()
  expect(await read(type, body)).toBeNull()
  const { user } = process.cpuUsage(before)
  // microseconds; half a million fields took 3.5 s
  expect(user).toBeLessThan(1_000_000)
})
