import { join } from 'node:path'
import { createHttpServer } from '@svc/internal-server'
import { block } from '@svc/testkit/block'
import { until } from '@svc/testkit/until'
import { describe, expect, it } from 'vitest'
import { connected, openBlobs } from '../support/connections.ts'
import { sharedByFile, testDaemon } from '../support/daemon.ts'
import { gguf, writeFiles } from '../support/models.ts'
import { rawExchange, request } from '../support/raw.ts'

const SIZE = 1 << 20

const shared = sharedByFile(async (cleanUp) => {
  const api = await testDaemon({}, cleanUp)
  const job = await api.import([writeFiles(join(api.folder, 'model'), { 'm-q8_0.gguf': gguf(SIZE - 24) })])
  const { files } = (await api.open('svc:///me/model:q8_0')).body as { files: { kind?: string; digest: string }[] }
  return { api, digest: files.find(({ kind }) => kind === 'weights.gguf')!.digest, manifest: job.manifest! }
})

describe('pipelined requests', () => {
  it('are read one chunk at a time: any number of them is accepted', async () => {
    const { api, digest } = await shared()
    const socket = await connected(api.socketPath)
    socket.pause()
    // more than may wait, were all of them read
    const count = 10_000
    const all = request(`/v1/blob/${digest}`) + request('/v1/nothing').repeat(count)
    socket.write(all + request('/v1/nothing', 'Connection: close\r\n'))
    await until(() => openBlobs() > 0)
    const chunks: Buffer[] = []
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.resume()
    await new Promise((resolve) => socket.on('close', resolve))
    const received = Buffer.concat(chunks).toString('latin1')
    expect(received.split('HTTP/1.1 404').length - 1).toBe(count + 1)
    await until(() => openBlobs() === 0)
  })

  it('use a bounded time per turn of the event loop, for any number of connections', async () => {
    const { api } = await shared()
    let inTurn = 0
    let most = 0
    const server = createHttpServer(({ url }, response) => {
      // the first of each connection starts at once
      if (url === '/waited') {
        most = Math.max(most, ++inTurn)
        // half of the time that a turn has
        block(1)
      }
      response.end('x')
    })
    const path = join(api.folder, 'turns.sock')
    await new Promise<void>((resolve) => server.listen(path, resolve))
    const turn = (): void => {
      inTurn = 0
      immediate = setImmediate(turn)
    }
    let immediate = setImmediate(turn)
    const [connections, each] = [20, 10]
    const all = request('/first') + request('/waited').repeat(each - 2) + request('/waited', 'Connection: close\r\n')
    const answers = await Promise.all(Array.from({ length: connections }, () => rawExchange(path, all)))
    clearImmediate(immediate)
    await new Promise((resolve) => server.close(resolve))
    for (const answer of answers) expect(answer.split('HTTP/1.1 200').length - 1).toBe(each)
    // two or three in a turn, of which the count here may see parts of two; without a bound it is one of each connection
    expect(most).toBeLessThanOrEqual(6)
  })

  it('have a limit over all connections: those beyond it are closed, others are answered', async () => {
    const { api, digest } = await shared()
    const sockets = await Promise.all(Array.from({ length: 20 }, () => connected(api.socketPath)))
    const received = sockets.map(() => 0)
    const closed = sockets.map((socket, i) => {
      socket.on('error', () => undefined)
      socket.on('data', (chunk: Buffer) => (received[i]! += chunk.length))
      socket.pause()
      // 600 requests wait behind a blob that nobody reads yet: 12,000 in all
      socket.end(`${request(`/v1/blob/${digest}`)}${request('/v1/nothing').repeat(600)}`)
      return new Promise((resolve) => socket.once('close', resolve))
    })
    await until(() => openBlobs() > 0)
    expect((await api.get('/v1/jobs')).status).toBe(200)
    for (const socket of sockets) socket.resume()
    await Promise.all(closed)
    const most = Math.max(...received)
    const whole = received.filter((bytes) => bytes === most).length
    expect([whole > 0, whole < sockets.length]).toEqual([true, true])
    await until(() => openBlobs() === 0)
  })
})
