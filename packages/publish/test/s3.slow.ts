// Buckets of a real S3 server: OpenStack Swift, which checks signatures, clocks and parts.
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { encodePath } from '@svc/internal-http'
import { haveS3Server, MIN_PART_BYTES, type S3Server, startS3Server } from '@svc/testkit/s3-server'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { openTarget, parseListing, parsePlace, publish, readerUrl, type S3Options, type Target } from '../src/index.ts'
import { failure, makeModel, temporaryFolder } from './fixture.ts'

const cleanups: (() => unknown)[] = []
let server: S3Server
let scratch: string

async function bucket(prefix: string, more: S3Options = {}): Promise<Target> {
  const place = parsePlace(`s3://${server.bucket}/${prefix}`, '/')
  const target = await openTarget(place, { env: server.env, partBytes: MIN_PART_BYTES, ...more })
  onTestFinished(() => target.close())
  return target
}

describe.skipIf(!haveS3Server)('a bucket', () => {
  beforeAll(async () => {
    scratch = temporaryFolder((work) => cleanups.push(work))
    server = await startS3Server(join(scratch, 's3'))
    cleanups.push(() => server.stop())
  })
  afterAll(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
  })

  test('serves ranges of every file under its name, and the list; a second run sends nothing', async () => {
    const model = makeModel(join(scratch, 'model'))
    const target = await bucket('pre fix+1/größe')
    expect(target.url).toBe(`${server.endpoint}/models/${encodePath('pre fix+1/größe/')}`)
    const url = `${server.publicUrl}${encodePath('pre fix+1/größe/')}`
    const publication = await model.publication({ url })
    const total = publication.objects.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
    const seen: number[] = []
    const done = await publish([publication], target, {
      url,
      checkUrl: true,
      onProgress: ({ bytesDone }) => seen.push(bytesDone)
    })
    expect(done).toMatchObject({ sentBytes: total, presentBytes: 0 })
    expect(Math.max(...seen)).toBe(total)
    for (const [path, bytes] of model.files) {
      const answer = await fetch(`${url}${encodePath(`${publication.name}/${path}`)}`)
      expect(answer.status, path).toBe(200)
      expect(Buffer.from(await answer.arrayBuffer()).equals(bytes), path).toBe(true)
      expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    }
    const listing = parseListing(Buffer.from(await (await fetch(`${url}index.json`)).arrayBuffer()), 'it')
    expect(listing).toMatchObject({ url, models: [{ ref: 'me/model:q8_0', infohash: publication.infohash }] })
    const page = await fetch(`${url}index.html`)
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(await page.text()).toContain(publication.manifestDigest)
    const again = await publish([publication], await bucket('pre fix+1/größe'), { url })
    expect(again).toMatchObject({ sentBytes: 0, presentBytes: total })
    expect(await readerUrl(target, undefined)).toBe(target.url)
  })

  test('another process resumes a stopped upload, and no partial object is visible meanwhile', async () => {
    const model = makeModel(join(scratch, 'resumed'), { seed: 11, sizeBytes: 900_000 })
    const publication = await model.publication()
    const weights = publication.objects.find(({ key }) => key.endsWith('.gguf'))!
    const stop = new AbortController()
    let sent = 0
    const first = await bucket('resumed')
    const stopped = await failure(
      first.put(weights, {
        signal: stop.signal,
        onBytes: (bytes) => {
          sent += bytes
          if (sent > weights.sizeBytes / 2) stop.abort(new Error('Ctrl-C'))
        }
      })
    )
    expect(stopped.message).toBe('Ctrl-C')
    const second = await bucket('resumed')
    expect(await second.has(weights, {})).toBe(false)
    const counted = countingParts()
    await second.put(weights, {})
    expect(await second.has(weights, {})).toBe(true)
    expect(counted()).toBeLessThan(Math.ceil(weights.sizeBytes / MIN_PART_BYTES) * 0.6)
    expect(await second.readDocument('.svc-publish/', 10).catch(() => 'none')).toBeOneOf([undefined, 'none'])
  })

  test('parts with the wrong bytes are sent again', async () => {
    const [right, wrong] = [
      makeModel(join(scratch, 'right'), { seed: 21, sizeBytes: 700_000 }),
      makeModel(join(scratch, 'wrong'), { seed: 22, sizeBytes: 700_000 })
    ]
    const weightsOf = async (model: typeof right) =>
      (await model.publication()).objects.find(({ key }) => key.endsWith('.gguf'))!
    const [object, other] = [await weightsOf(right), await weightsOf(wrong)]
    const stop = new AbortController()
    const target = await bucket('mixed')
    // an upload of other bytes that looks like this object's
    let sent = 0
    const onBytes = (bytes: number): void => {
      sent += bytes
      if (sent > 300_000) stop.abort(new Error('stopped'))
    }
    const lie = { ...object, content: other.content }
    await failure(target.put(lie, { signal: stop.signal, onBytes }))
    await target.put(object, {})
    await publishable(target, object)
  })

  test('a damaged local file never becomes an object', async () => {
    const model = makeModel(join(scratch, 'damaged'), { seed: 31, sizeBytes: 150_000 })
    const { objects } = await model.publication()
    const target = await bucket('damaged')
    for (const object of objects.filter(
      ({ content, sizeBytes }) => !(content instanceof Uint8Array) && sizeBytes > 0
    )) {
      const { path } = object.content as { path: string }
      const bytes = readFileSync(path)
      bytes[bytes.length - 1]! ^= 1
      writeFileSync(path, bytes)
      expect((await failure(target.put(object, {}))).code).toBe('E_DIGEST_MISMATCH')
      expect(await target.has(object, {})).toBe(false)
      truncateSync(path, bytes.length - 1)
      expect((await failure(target.put(object, {}))).code).toBe('E_DIGEST_MISMATCH')
    }
  })

  test("another tool's object is kept if its bytes match; other bytes of the same size are replaced", async () => {
    const model = makeModel(join(scratch, 'theirs'), { seed: 41, sizeBytes: 70_000 })
    const { objects } = await model.publication()
    const target = await bucket('theirs')
    const small = objects.find(({ key }) => key.endsWith('adapter.tar'))!
    const { S3Client, PutObjectCommand } = await import('@aws-sdk/client-s3')
    const client = new S3Client({
      endpoint: server.endpoint,
      region: 'us-east-1',
      forcePathStyle: true,
      credentials: server,
      requestChecksumCalculation: 'WHEN_REQUIRED'
    })
    onTestFinished(() => client.destroy())
    const body = readFileSync((small.content as { path: string }).path)
    const put = (Body: Buffer) =>
      client.send(new PutObjectCommand({ Bucket: 'models', Key: `theirs/${small.key}`, Body }))
    await put(body)
    expect(await target.has(small, {})).toBe(true)
    body[0]! ^= 1
    await put(body)
    expect(await target.has(small, {})).toBe(false)
    await target.put(small, {})
    await publishable(target, small)
  })

  test('two simultaneous publications leave both models in the list', async () => {
    const models = [51, 52].map((seed) =>
      makeModel(join(scratch, `both${seed}`), { seed, sizeBytes: 70_000, ref: `me/m${seed}:raw` })
    )
    await Promise.all(models.map(async (model) => publish([await model.publication()], await bucket('both'))))
    const again = await bucket('both')
    // Swift has no conditional writes: if one list overwrote the other, publishing again mends it and sends no file twice
    for (const model of models)
      expect(await publish([await model.publication()], again)).toMatchObject({ sentBytes: 0 })
    const { bytes } = (await again.readDocument('index.json', 1 << 20))!
    expect(parseListing(bytes, 'it').models.map(({ ref }) => ref)).toEqual(['me/m51:raw', 'me/m52:raw'])
  })

  test("a wrong key, a missing bucket and somebody else's page each have their own code", async () => {
    const { objects } = await makeModel(join(scratch, 'refused'), { sizeBytes: 70_000 }).publication()
    const wrongKey = await bucket('x', { env: { ...server.env, AWS_SECRET_ACCESS_KEY: 'wrong' } })
    expect((await failure(wrongKey.has(objects[0]!, {}))).code).toBe('E_DENIED')
    const denied = await failure(wrongKey.readDocument('index.json', 1000))
    expect(denied.code).toBe('E_DENIED')
    for (const secret of [server.secretAccessKey, 'wrong']) expect(denied.message).not.toContain(secret)
    const place = parsePlace('s3://nonesuch/x', '/')
    const none = await openTarget(place, { env: server.env })
    expect((await failure(none.readDocument('index.json', 1000))).code).toBe('E_NOT_FOUND')
    await none.close()
    const page = await bucket('page')
    const html = Buffer.from('<title>mine</title>')
    const document = { ...objects[0]!, key: 'index.html', content: html, sizeBytes: html.length }
    expect(await page.replaceDocument(document, undefined)).toBe(true)
    expect((await failure(publish([], page))).code).toBe('E_BAD_TARGET')
    const long = await bucket('p'.repeat(500))
    expect((await failure(long.requireRoom([{ ...objects[0]!, key: 'k'.repeat(600) }]))).code).toBe('E_BAD_TARGET')
  })
})

/** Reads the object back and compares it with the file. */
async function publishable(target: Target, object: Parameters<Target['has']>[0]): Promise<void> {
  const wanted = readFileSync((object.content as { path: string }).path)
  expect(Buffer.compare(await target.readRange(object, 0, object.sizeBytes), wanted)).toBe(0)
}

/** Counts the parts that are sent from now on. */
function countingParts(): () => number {
  let count = 0
  const channel = 'http.client.request.start'
  const seen = (message: unknown): void => {
    const { request } = message as { request: { method: string; path: string } }
    if (request.method === 'PUT' && request.path.includes('partNumber=')) count += 1
  }
  subscribe(channel, seen)
  onTestFinished(() => void unsubscribe(channel, seen))
  return () => count
}
