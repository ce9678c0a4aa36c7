import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { createServer } from 'node:http'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BlobReader } from '@svc/cas'
import { digestFromBytes } from '@svc/ref'
import { until } from '@svc/testkit/until'
import { expect, onTestFinished, test } from 'vitest'
import { sendBlob } from '../src/blob-response.ts'
import { BufferPool } from '../src/buffer-pool.ts'

const CHUNK_BYTES = 256 << 10

class CountingPool extends BufferPool {
  readonly out = new Set<Buffer>()
  taken = 0

  override acquire(): Buffer {
    const buffer = super.acquire()
    expect(this.out.has(buffer)).toBe(false)
    this.out.add(buffer)
    this.taken += 1
    return buffer
  }

  override release(buffer: Buffer): void {
    expect(this.out.delete(buffer)).toBe(true)
    super.release(buffer)
  }
}

test('keeps 16 buffers, and frees the memory of others early', async () => {
  const pool = new BufferPool(CHUNK_BYTES)
  const taken = Array.from({ length: 40 }, () => pool.acquire())
  for (const buffer of taken) expect(buffer.fill(1).length).toBe(CHUNK_BYTES)
  for (const buffer of taken) pool.release(buffer)
  const empty = (): number => taken.filter((buffer) => buffer.buffer.byteLength === 0).length
  await until(() => empty() === 24)
  expect(taken.filter((buffer) => buffer.length === CHUNK_BYTES)).toHaveLength(16)
  expect(pool.acquire().length).toBe(CHUNK_BYTES)
})

const readerOf = (file: FileHandle, sizeBytes: number): BlobReader => ({
  digest: digestFromBytes(new Uint8Array(32)),
  sizeBytes,
  fd: file.fd,
  read: async (target, offset) => (await file.read(target, 0, target.length, offset)).bytesRead,
  stream: (range) => file.createReadStream({ start: range?.start, end: range && range.end - 1 }),
  close: () => file.close()
})

test('each buffer is returned once, even if clients disconnect; other clients get the right bytes', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-server-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const content = randomBytes(6 << 20)
  const path = join(folder, 'm.gguf')
  writeFileSync(path, content)
  const pool = new CountingPool(CHUNK_BYTES)
  let begun = 0
  const server = createServer((request, response) => {
    begun += 1
    void open(path).then((file) =>
      sendBlob(request, response, readerOf(file, content.length), { pool, refuse: () => undefined })
    )
  })
  const socketPath = join(folder, 's.sock')
  server.listen(socketPath)
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const ask = async (): Promise<Socket> => {
    const socket = connect(socketPath)
    await once(socket, 'connect')
    socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    return socket
  }

  const count = 30
  const slow = await Promise.all(Array.from({ length: count }, async () => (await ask()).pause()))
  // each has filled the socket, and both its buffers
  await until(() => begun === count && pool.taken >= 2 * count)
  for (const socket of slow) socket.destroy()
  await until(() => pool.out.size === 0)

  const bodies = await Promise.all(
    Array.from({ length: 10 }, async () => {
      const chunks: Buffer[] = []
      for await (const chunk of await ask()) chunks.push(chunk as Buffer)
      const answer = Buffer.concat(chunks)
      return answer.subarray(answer.indexOf('\r\n\r\n') + 4)
    })
  )
  expect(bodies.filter((body) => body.equals(content))).toHaveLength(10)
  await until(() => pool.out.size === 0)
})
