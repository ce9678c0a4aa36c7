import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { request } from 'node:http'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { until } from '@svc/testkit/until'
import { describe, expect, it } from 'vitest'
import { ApiClient, sharedByFile, type TestDaemon, testDaemon } from '../support/daemon.ts'
import { gguf, writeFiles } from '../support/models.ts'

const content = gguf(3_000_000)
const shared = sharedByFile(async (cleanUp) => {
  const api = await testDaemon({}, cleanUp)
  await api.import([writeFiles(join(api.folder, 'm'), { 'm-q4_0.gguf': content, 'e-q4_0.gguf': '' })])
  const { files } = (await api.open('svc:///me/model:q4_0')).body
  const find = (name: string): string => files.find((file: { name?: string }) => file.name === name).digest
  return { api, digest: find('m-q4_0.gguf'), empty: find('e-q4_0.gguf') }
})
const openBlobs = (api: TestDaemon): number =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith(join(api.root, 'blobs'))
    } catch {
      return false
    }
  }).length

describe('GET and HEAD of a blob', () => {
  it('sends it whole, by digest and by bare hex', async () => {
    const { api, digest } = await shared()
    for (const name of [digest, digest.slice(7), encodeURIComponent(digest)]) {
      const { status, headers, bytes } = await api.get(`/v1/blob/${name}`)
      expect(status).toBe(200)
      expect(bytes.equals(content)).toBe(true)
      expect(headers).toMatchObject({
        'accept-ranges': 'bytes',
        'content-length': String(content.length),
        etag: `"${digest}"`,
        'content-type': 'application/octet-stream'
      })
      expect(headers['last-modified']).toBeUndefined()
    }
  })

  it('answers HEAD with the headers of the full GET', async () => {
    const { api, digest } = await shared()
    const get = await api.get(`/v1/blob/${digest}`)
    const head = await api.call('HEAD', `/v1/blob/${digest}`, { headers: { Range: 'bytes=0-1' } })
    expect(head.status).toBe(200)
    expect(head.bytes).toHaveLength(0)
    for (const name of ['accept-ranges', 'content-length', 'etag', 'content-type'])
      expect(head.headers[name]).toBe(get.headers[name])
    expect((await api.call('HEAD', `/v1/blob/sha256:${'0'.repeat(64)}`)).status).toBe(404)
  })

  it('sends every row of vectors/ranges.json', async () => {
    const api = await testDaemon()
    const { ranges } = JSON.parse(
      readFileSync(new URL('../../../../vectors/ranges.json', import.meta.url), 'utf8')
    ) as {
      ranges: {
        name: string
        sizeBytes: number
        range: string
        verdict: 'whole' | 'unsatisfiable' | [number, number]
      }[]
    }
    const digests = new Map<number, string>()
    for (const size of [0, 10]) {
      const { digest } = await api.running.context.store.ingest(
        (async function* () {
          yield Buffer.from('0123456789').subarray(0, size)
        })()
      )
      digests.set(size, digest)
    }
    for (const { name, sizeBytes, range, verdict } of ranges) {
      const { status, bytes, headers, body } = await api.get(`/v1/blob/${digests.get(sizeBytes)}`, { Range: range })
      if (verdict === 'whole')
        expect([name, status, bytes.toString()]).toEqual([name, 200, '0123456789'.slice(0, sizeBytes)])
      else if (verdict === 'unsatisfiable') {
        expect([name, status, body.error.code, headers['content-range']]).toEqual([
          name,
          416,
          'E_RANGE_INVALID',
          `bytes */${sizeBytes}`
        ])
      } else {
        const [start, end] = verdict
        expect([name, status, bytes.toString()]).toEqual([name, 206, '0123456789'.slice(start, end)])
        expect(headers['content-range']).toBe(`bytes ${start}-${end - 1}/${sizeBytes}`)
        expect(headers['content-length']).toBe(String(end - start))
      }
    }
  })

  it('sends ranges across chunk borders', async () => {
    const { api, digest } = await shared()
    for (const [start, end] of [
      [0, 1],
      [1_048_575, 1_048_577],
      [1_000_000, 2_500_000],
      [2_999_999, content.length]
    ] as const) {
      const { bytes } = await api.get(`/v1/blob/${digest}`, { Range: `bytes=${start}-${end - 1}` })
      expect(bytes.equals(content.subarray(start, end))).toBe(true)
    }
  })

  it.each([
    ['If-None-Match', 304, undefined],
    ['If-Match', 412, 'E_PRECONDITION_FAILED']
  ])('%s', async (header, status, code) => {
    const { api, digest } = await shared()
    const answer = await api.get(`/v1/blob/${digest}`, { [header]: header === 'If-Match' ? '"other"' : `"${digest}"` })
    expect([answer.status, answer.body?.error.code]).toEqual([status, code])
    expect(answer.headers.etag).toBe(`"${digest}"`)
  })

  it.each([
    ['nothing known', `sha256:${'0'.repeat(64)}`, 404, 'E_NOT_FOUND'],
    ['upper case', `sha256:${'A'.repeat(64)}`, 400, 'E_BAD_REQUEST'],
    ['bare upper case', 'A'.repeat(64), 400, 'E_BAD_REQUEST'],
    ['short', 'sha256:abc', 400, 'E_BAD_REQUEST'],
    ['another algorithm', `sha512:${'0'.repeat(128)}`, 400, 'E_BAD_REQUEST'],
    ['a partial file', 'x.part', 400, 'E_BAD_REQUEST']
  ])('%s', async (_name, digest, status, code) => {
    const { api } = await shared()
    const answer = await api.get(`/v1/blob/${digest}`)
    expect([answer.status, answer.body.error.code]).toEqual([status, code])
  })

  it('sends an empty blob', async () => {
    const { api, empty } = await shared()
    const { status, headers, bytes } = await api.get(`/v1/blob/${empty}`)
    expect([status, headers['content-length'], bytes.length]).toEqual([200, '0', 0])
    expect((await api.get(`/v1/blob/${empty}`, { Range: 'bytes=0-' })).headers['content-range']).toBe('bytes */0')
  })

  it('keeps a connection for pipelined and sequential requests', async () => {
    const { api, digest } = await shared()
    const one = `GET /v1/blob/${digest} HTTP/1.1\r\nHost: x\r\nRange: bytes=0-9\r\n\r\n`
    const last = one.replace('Host: x', 'Host: x\r\nConnection: close')
    const chunks: Buffer[] = []
    await new Promise<void>((resolve, reject) => {
      const socket = createConnection({ path: api.socketPath })
      socket.on('data', (chunk) => chunks.push(chunk))
      socket.on('error', reject)
      socket.on('close', () => resolve())
      socket.write(one + one + last)
    })
    expect(
      Buffer.concat(chunks)
        .toString('latin1')
        .match(/HTTP\/1\.1 206/g)
    ).toHaveLength(3)
  })
})

describe('slow and broken readers', () => {
  it('release the descriptor at once when they disconnect', async () => {
    const { api, digest } = await shared()
    for (let i = 0; i < 10; i++) {
      await new Promise<void>((resolve) => {
        const call = request(
          { socketPath: api.socketPath, path: `/v1/blob/${digest}`, headers: { Host: 'x' } },
          (response) => {
            response.once('data', () => {
              response.destroy()
              resolve()
            })
          }
        )
        call.on('error', () => undefined)
        call.end()
      })
    }
    await until(() => openBlobs(api) === 0)
    expect(openBlobs(api)).toBe(0)
  })

  it('do not delay other clients', async () => {
    const { api, digest } = await shared()
    const slow = Array.from({ length: 40 }, () => {
      const socket = createConnection({ path: api.socketPath })
      socket.on('error', () => undefined)
      socket.pause()
      socket.write(`GET /v1/blob/${digest} HTTP/1.1\r\nHost: x\r\n\r\n`)
      return socket
    })
    const client = new ApiClient(api.socketPath)
    for (let i = 0; i < 5; i++) expect((await client.get(`/v1/blob/${digest}`)).bytes.equals(content)).toBe(true)
    client.agent.destroy()
    for (const socket of slow) socket.destroy()
    await until(() => openBlobs(api) === 0)
  })
})
