// Stores that are busy, full, wrong or lying: our own server in place of one. One file, since each test is one lie of it.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openTarget, type PublishedObject, publish, type Target } from '../src/index.ts'
import { failure, makeModel, temporaryFolder } from './fixture.ts'

type Answer = (request: IncomingMessage, response: ServerResponse, tries: number) => void

interface Store {
  readonly target: Target
  readonly requests: readonly string[]
}

async function store(answer: Answer, endpointPath = ''): Promise<Store> {
  const requests: string[] = []
  const tries = new Map<string, number>()
  const server = createServer((request, response) => {
    const what = `${request.method} ${request.url}`
    requests.push(what)
    tries.set(what, (tries.get(what) ?? 0) + 1)
    request.resume().once('end', () => answer(request, response, tries.get(what)!))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}${endpointPath}`
  const env = { AWS_ACCESS_KEY_ID: 'AKIAEXAMPLE', AWS_SECRET_ACCESS_KEY: 'hush', AWS_ENDPOINT_URL_S3: endpoint }
  const target = await openTarget({ kind: 's3', bucket: 'models', prefix: 'p/' }, { env, partBytes: 65_536 })
  onTestFinished(async () => {
    await target.close()
    server.closeAllConnections()
    server.close()
  })
  return { target, requests }
}

const refuse = (response: ServerResponse, status: number, code: string, headers = {}): void =>
  void response
    .writeHead(status, { 'content-type': 'application/xml', ...headers })
    .end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>no</Message></Error>`)

async function weights(sizeBytes = 150_000): Promise<PublishedObject> {
  const { objects } = await makeModel(temporaryFolder(), { sizeBytes }).publication()
  return objects.find(({ key }) => key.endsWith('.gguf'))!
}
const small = (): Promise<PublishedObject> => weights(1000)

test('a requested wait is respected', async () => {
  const times: number[] = []
  const { target } = await store((_request, response, tries) => {
    times.push(performance.now())
    if (tries < 3) return refuse(response, 503, 'SlowDown', { 'retry-after': '1' })
    response.writeHead(200, { 'content-length': '1000' }).end()
  })
  expect(await target.has(await small(), {})).toBe(false)
  expect(times).toHaveLength(3)
  expect(times[1]! - times[0]!).toBeGreaterThan(700)
})

test.each([
  [403, 'AccessDenied', 'E_DENIED'],
  [403, 'InvalidAccessKeyId', 'E_DENIED'],
  [404, 'NoSuchBucket', 'E_NOT_FOUND'],
  [301, 'PermanentRedirect', 'E_BAD_TARGET'],
  [400, 'AuthorizationHeaderMalformed', 'E_BAD_TARGET'],
  [507, 'InsufficientStorage', 'E_NO_SPACE'],
  [400, 'Strange', 'E_UNAVAILABLE']
] as const)('%d %s is %s, and the message has nothing of the key', async (status, name, code) => {
  const { target } = await store((_request, response) => refuse(response, status, name))
  const error = await failure(target.readDocument('index.json', 1000))
  expect(error.code).toBe(code)
  for (const secret of ['hush', 'AKIAEXAMPLE']) expect(error.message).not.toContain(secret)
})

test('signatures correct a wrong clock; if that does not help, the error names the clock', async () => {
  const skewed = (response: ServerResponse): void =>
    refuse(response, 403, 'RequestTimeTooSkewed', { date: new Date(Date.now() + 3_600_000).toUTCString() })
  const dates: string[] = []
  const helped = await store((request, response, tries) => {
    dates.push(String(request.headers['x-amz-date']))
    if (tries === 1) return skewed(response)
    response.writeHead(200, { 'content-length': '2', etag: '"x"' }).end('{}')
  })
  expect((await helped.target.readDocument('index.json', 1000))?.bytes.length).toBe(2)
  expect(dates[1]! > dates[0]!).toBe(true)
  const { target } = await store((_request, response) => skewed(response))
  expect((await failure(target.readDocument('index.json', 1000))).code).toBe('E_CLOCK')
})

describe('a store that lies', () => {
  test('about received bytes is detected', async () => {
    const { target } = await store((request, response) => {
      if (request.method === 'HEAD') return void response.writeHead(200, { 'content-length': '5' }).end()
      response.writeHead(200, { etag: '"ok"' }).end()
    })
    expect((await failure(target.put(await small(), {}))).code).toBe('E_UNAVAILABLE')
  })

  test('about stored bytes is detected before the model is listed', async () => {
    const publication = await makeModel(temporaryFolder(), { sizeBytes: 1000 }).publication()
    const hex = new Map(
      publication.objects.map(({ key, digest, sizeBytes }) => [`/models/p/${key}`, { digest, sizeBytes }])
    )
    const { target, requests } = await store((request, response) => {
      const known = hex.get(decodeURIComponent(request.url!.split('?')[0]!))
      if (known === undefined) return refuse(response, 404, 'NoSuchKey')
      const sha256 = known.digest.slice('sha256:'.length)
      if (request.method === 'HEAD') {
        return void response.writeHead(200, { 'content-length': known.sizeBytes, 'x-amz-meta-sha256': sha256 }).end()
      }
      const range = { 'content-range': `bytes 0-${known.sizeBytes - 1}/${known.sizeBytes}` }
      response.writeHead(206, range).end(Buffer.alloc(known.sizeBytes))
    })
    expect((await failure(publish([publication], target))).code).toBe('E_CHECK_FAILED')
    expect(requests.filter((request) => request.startsWith('PUT'))).toEqual([])
  })

  test.each(['bytes 0-9/11', 'bytes 1-10/10', 'nonsense', undefined])(
    'about the range (%s) is detected',
    async (range) => {
      const { target } = await store((_request, response) => {
        response.writeHead(206, { ...(range !== undefined && { 'content-range': range }) }).end(Buffer.alloc(10))
      })
      expect((await failure(target.readRange({ ...(await small()), sizeBytes: 10 }, 0, 10))).code).toBe(
        'E_CHECK_FAILED'
      )
    }
  )

  test('by sending more than requested is cut off', async () => {
    const { target } = await store((_request, response) => {
      response.writeHead(200, { etag: '"x"' })
      const more = (): void => {
        while (response.write(Buffer.alloc(65_536))) if (response.destroyed) return
      }
      response.on('drain', more)
      more()
    })
    expect((await failure(target.readDocument('index.json', 100_000))).code).toBe('E_BAD_TARGET')
  })

  test('by forgetting uploads is given up after the second', async () => {
    let begun = 0
    const { target, requests } = await store((request, response) => {
      const url = new URL(request.url!, 'http://h')
      if (request.method === 'POST' && url.searchParams.has('uploads')) {
        begun += 1
        return void response
          .writeHead(200)
          .end(`<InitiateMultipartUploadResult><UploadId>u${begun}</UploadId></InitiateMultipartUploadResult>`)
      }
      if (url.searchParams.has('uploadId')) return refuse(response, 404, 'NoSuchUpload')
      if (request.method === 'PUT') return void response.writeHead(200, { etag: '"x"' }).end()
      if (request.method === 'DELETE') return void response.writeHead(204).end()
      refuse(response, 404, 'NoSuchKey')
    })
    expect((await failure(target.put(await weights(), {}))).code).toBe('E_UNAVAILABLE')
    expect(begun).toBe(2)
    expect(requests.filter((request) => request.includes('partNumber')).length).toBeGreaterThan(1)
  })

  test('by reporting a failed completion with status 200 is noticed, and asked again', async () => {
    let finishing = 0
    const { target } = await store((request, response) => {
      const url = new URL(request.url!, 'http://h')
      if (request.method === 'POST' && url.searchParams.has('uploads')) {
        return void response
          .writeHead(200)
          .end('<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>')
      }
      if (request.method === 'POST') {
        finishing += 1
        const error = '<Error><Code>InternalError</Code><Message>no</Message></Error>'
        return void response.writeHead(200).end(finishing === 1 ? error : '<CompleteMultipartUploadResult/>')
      }
      if (request.method === 'PUT') return void response.writeHead(200, { etag: '"x"' }).end()
      if (request.method === 'HEAD') return void response.writeHead(200, { 'content-length': '150000' }).end()
      refuse(response, 404, 'NoSuchKey')
    })
    await target.put(await weights(), {})
    expect(finishing).toBe(2)
  })
})

const begun = '<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>'
const isBegin = (request: IncomingMessage): boolean => request.method === 'POST' && request.url!.includes('?uploads')
const isFinish = (request: IncomingMessage): boolean => request.method === 'POST' && !isBegin(request)
const isList = (request: IncomingMessage): boolean => request.method === 'GET' && request.url!.includes('uploadId=')
const note = (partBytes: number, key: string): string => JSON.stringify({ key, uploadId: 'u', partBytes })

/** A store that works, except for the requests that `answer` takes over. */
async function uploads(answer: (request: IncomingMessage, response: ServerResponse) => boolean): Promise<Store> {
  const { key } = await weights()
  return store((request, response) => {
    if (answer(request, response)) return
    if (isBegin(request)) return void response.writeHead(200).end(begun)
    if (isFinish(request)) return void response.writeHead(200).end('<CompleteMultipartUploadResult/>')
    if (request.url!.includes('.svc-publish')) return void response.writeHead(200).end(note(65_536, key))
    if (isList(request)) return void response.writeHead(200).end('<ListPartsResult/>')
    if (request.method === 'PUT') return void response.writeHead(200, { etag: '"x"' }).end()
    if (request.method === 'HEAD') return void response.writeHead(200, { 'content-length': '150000' }).end()
    refuse(response, 404, 'NoSuchKey')
  })
}

function endless(response: ServerResponse, status: number, start: string, more: string): true {
  let sent = 0
  response.on('close', () => {
    endlessBytes = sent
  })
  response.writeHead(status, { 'content-type': 'application/xml' }).write(start)
  const chunk = Buffer.from(more.repeat(Math.ceil(65_536 / more.length)))
  function go(): void {
    // accepting more than this is a failure in any case, and would fill this process's memory
    while (!response.destroyed && sent < 64 << 20) {
      sent += chunk.length
      if (!response.write(chunk)) return void response.once('drain', go)
    }
    response.end()
  }
  go()
  return true
}
let endlessBytes = 0

describe('an answer without end', () => {
  test.each<[string, (request: IncomingMessage) => boolean, number]>([
    ['to the start of an upload', isBegin, 200],
    ['to its completion', isFinish, 200],
    ['to a request for its parts', isList, 200],
    ['to a part', (request) => request.method === 'PUT' && request.url!.includes('partNumber'), 200],
    ['that refuses a part', (request) => request.method === 'PUT' && request.url!.includes('partNumber'), 400],
    ['that refuses to read', (request) => request.url!.includes('.svc-publish'), 403]
  ])('%s is cut off', async (_, isIt, status) => {
    endlessBytes = 0
    const { target } = await uploads((request, response) => {
      if (isBegin(request) || !isIt(request)) {
        // without a note, a new upload is started
        if (isIt === isBegin && request.url!.includes('.svc-publish')) refuse(response, 404, 'NoSuchKey')
        else if (isIt === isBegin && isBegin(request))
          return endless(response, status, '<?xml version="1.0"?><a>', '<b>c</b>')
        else return false
        return true
      }
      return endless(response, status, '<?xml version="1.0"?><Error><Code>x</Code>', '<b>c</b>')
    })
    expect((await failure(target.put(await weights(), {}))).code).toBe('E_UNAVAILABLE')
    await expect.poll(() => endlessBytes).toBeGreaterThan(0)
    expect(endlessBytes).toBeLessThan(16 << 20)
  })

  test.each([
    ['whose marker stays', () => 1],
    ['whose marker goes back', (n: number) => 100 - n],
    ['whose marker is not a number', () => 'x'],
    ['whose marker advances by one part', (n: number) => n + 1],
    ['whose marker is beyond all parts', (n: number) => 1e15 + n]
  ] as const)('a list of parts %s is not requested forever', async (_, marker) => {
    let asked = 0
    const { target, requests } = await uploads((request, response) => {
      if (!isList(request)) return false
      response
        .writeHead(200)
        .end(
          `<ListPartsResult><IsTruncated>true</IsTruncated><NextPartNumberMarker>${marker(asked)}</NextPartNumberMarker></ListPartsResult>`
        )
      asked += 1
      return true
    })
    await target
      .put(await weights(), {})
      .catch((error: unknown) => expect(error).toMatchObject({ code: 'E_UNAVAILABLE' }))
    expect(requests.filter((request) => request.includes('uploadId=')).length).toBeGreaterThan(0)
    expect(asked).toBeLessThan(300)
  })
})

test.each([
  ['deep', '<a>'.repeat(200_000)],
  [
    'with entities of entities',
    `<!DOCTYPE a [<!ENTITY a "${'x'.repeat(1000)}"><!ENTITY b "${'&a;'.repeat(1000)}"><!ENTITY c "${'&b;'.repeat(1000)}">]><a><UploadId>&c;</UploadId></a>`
  ],
  [
    'with an external entity',
    '<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]><InitiateMultipartUploadResult><UploadId>&a;</UploadId></InitiateMultipartUploadResult>'
  ],
  ['that ends early', '<InitiateMultipartUploadResult><UploadId>u'],
  ['that is not XML', '\0\u001b]0;x\u0007{}'],
  ['without the id', '<InitiateMultipartUploadResult/>'],
  [
    'with two ids',
    '<InitiateMultipartUploadResult><UploadId>a</UploadId><UploadId>b</UploadId></InitiateMultipartUploadResult>'
  ],
  [
    'with an element in the id',
    '<InitiateMultipartUploadResult><UploadId><a>b</a></UploadId></InitiateMultipartUploadResult>'
  ],
  [
    'with names of JavaScript builtins',
    '<InitiateMultipartUploadResult><__proto__><UploadId>u</UploadId></__proto__><constructor>x</constructor></InitiateMultipartUploadResult>'
  ]
])('an answer %s starts no upload, or one with that literal id; nothing else happens', async (_, xml) => {
  const { target, requests } = await uploads((request, response) => {
    if (request.url!.includes('.svc-publish') && request.method === 'GET') refuse(response, 404, 'NoSuchKey')
    else if (isBegin(request)) response.writeHead(200).end(xml)
    else return false
    return true
  })
  const outcome = await target.put(await weights(), {}).then(
    () => 'done',
    (error: { readonly code?: unknown }) => error.code
  )
  expect(['done', 'E_UNAVAILABLE']).toContain(outcome)
  expect(requests.every((request) => request.length < 4_096)).toBe(true)
  expect(requests.join()).not.toContain('root:')
  expect(Object.keys(Object.prototype)).toEqual([])
})

test.each([301, 302, 307, 308])('no request follows a redirect (%d): nothing signed goes elsewhere', async (status) => {
  const elsewhere: string[] = []
  const other = createServer((request, response) => {
    elsewhere.push(`${request.method} ${request.url}`)
    response.end()
  })
  await new Promise<void>((done) => other.listen(0, '127.0.0.1', done))
  onTestFinished(() => {
    other.closeAllConnections()
    other.close()
  })
  const location = `http://127.0.0.1:${(other.address() as AddressInfo).port}/`
  const { target } = await store((_request, response) => void response.writeHead(status, { location }).end())
  const object = await small()
  const large = await weights()
  for (const ask of [
    () => target.has(object, {}),
    () => target.put(object, {}),
    () => target.put(large, {}),
    () => target.readDocument('index.json', 1000),
    () => target.readRange({ ...object, sizeBytes: 10 }, 0, 10)
  ])
    expect(['E_BAD_TARGET', 'E_UNAVAILABLE']).toContain((await failure(ask())).code)
  expect(elsewhere).toEqual([])
})

test('a store without conditional requests is written to without them', async () => {
  const object = await small()
  const document = { ...object, content: Buffer.alloc(object.sizeBytes) }
  const { target, requests } = await store((request, response) => {
    if (request.headers['if-none-match'] !== undefined) return refuse(response, 501, 'NotImplemented')
    response.writeHead(200, { etag: '"x"' }).end()
  })
  expect(await target.replaceDocument(document, undefined)).toBe(true)
  expect(requests.filter((request) => request.startsWith('PUT')).length).toBeGreaterThan(1)
  const busy = await store((_request, response) => refuse(response, 412, 'PreconditionFailed'))
  expect(await busy.target.replaceDocument(document, { bytes: new Uint8Array(), version: '"y"' })).toBe(false)
})

test('without a key, the error says where keys come from', async () => {
  const target = await openTarget(
    { kind: 's3', bucket: 'models', prefix: '' },
    { env: { AWS_ENDPOINT_URL: 'http://127.0.0.1:9' }, region: 'us-east-1' }
  )
  onTestFinished(() => target.close())
  const before = { ...process.env }
  Object.assign(process.env, {
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_SHARED_CREDENTIALS_FILE: '/nonexistent',
    AWS_CONFIG_FILE: '/nonexistent'
  })
  onTestFinished(() => {
    for (const key of Object.keys(process.env)) if (!(key in before)) delete process.env[key]
    Object.assign(process.env, before)
  })
  expect((await failure(target.readDocument('index.json', 1))).code).toBe('E_CREDENTIALS')
  await expect(openTarget({ kind: 's3', bucket: 'models', prefix: '' }, { endpoint: 'ftp://h' })).rejects.toMatchObject(
    {
      code: 'E_BAD_TARGET'
    }
  )
})

test('the proxy of the environment is used, except for addresses in NO_PROXY', async () => {
  const asked: string[] = []
  const proxy = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    refuse(response, 404, 'NoSuchKey')
  })
  await new Promise<void>((done) => proxy.listen(0, '127.0.0.1', done))
  const { port } = proxy.address() as AddressInfo
  const keys = { AWS_ACCESS_KEY_ID: 'AKIAEXAMPLE', AWS_SECRET_ACCESS_KEY: 'hush' }
  const open = async (endpoint: string, env: Record<string, string>): Promise<Target> => {
    const more = { ...keys, AWS_ENDPOINT_URL_S3: endpoint, HTTP_PROXY: `http://127.0.0.1:${port}`, ...env }
    const target = await openTarget({ kind: 's3', bucket: 'models', prefix: 'p/' }, { env: more })
    onTestFinished(() => target.close())
    return target
  }
  onTestFinished(() => {
    proxy.closeAllConnections()
    proxy.close()
  })
  expect(await (await open('http://s3.invalid', {})).readDocument('index.json', 64)).toBeUndefined()
  expect(asked[0]).toMatch(/^GET http:\/\/s3\.invalid(?::80)?\/models\/p\//)
  asked.length = 0
  // the proxy itself is the store now
  expect(
    await (await open(`http://127.0.0.1:${port}`, { NO_PROXY: '127.0.0.1' })).readDocument('index.json', 64)
  ).toBeUndefined()
  expect(asked[0]).toMatch(/^GET \/models\/p\//)
})

test.each(['http://user:s3cret@pro xy:3128', 'http://us%er:s3cret@proxy:3128', 'http://user:s3cret@proxy:99999'])(
  'an invalid proxy (%s) is refused without quoting its password',
  async (HTTPS_PROXY) => {
    const env = { AWS_ACCESS_KEY_ID: 'AKIAEXAMPLE', AWS_SECRET_ACCESS_KEY: 'hush', HTTPS_PROXY }
    const error = await openTarget(
      { kind: 's3', bucket: 'models', prefix: '' },
      { endpoint: 'https://s3.invalid', env }
    ).then(
      () => undefined,
      (thrown: unknown) => thrown
    )
    expect(error).toMatchObject({ code: 'E_BAD_TARGET' })
    expect(inspect(error, { depth: 5 })).not.toContain('s3cret')
  }
)
