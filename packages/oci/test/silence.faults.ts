import { createServer, type Socket } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { digestOf } from '../src/document.ts'
import { fetchBlob } from '../src/fetch-blob.ts'
import { Repository } from '../src/registry.ts'

/** A registry that answers each request with `first`, and with nothing after it. */
async function silent(first: string): Promise<{ readonly host: string; readonly asked: () => number }> {
  const sockets = new Set<Socket>()
  let asked = 0
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
    socket.once('data', () => {
      asked += 1
      if (first !== '') socket.write(first)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { host: `127.0.0.1:${(server.address() as { port: number }).port}`, asked: () => asked }
}

// At the lengths of the product: six tries of 30 s (60 s before an answer begins), and the pauses between them.
it.concurrent.each([
  ['in the middle of a blob', 'HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\nsome'],
  ['before the answer', '']
])('a registry that goes silent %s is given up after six tries', { timeout: 900_000 }, async (_, first) => {
  const { host, asked } = await silent(first)
  const repository = new Repository(
    { registry: host, repository: 'team/model' },
    { credentials: async () => undefined }
  )
  onTestFinished(() => repository.close())
  const sink = { sizeBytes: 3_000_000, ranges: () => [], write: async () => undefined }
  const begun = performance.now()
  await expect(fetchBlob(repository, digestOf(Buffer.of(1)), sink)).rejects.toMatchObject({ code: 'E_UNAVAILABLE' })
  const seconds = Math.round((performance.now() - begun) / 1_000)
  expect(asked()).toBe(6)
  expect(seconds).toBeGreaterThan(170)
})
