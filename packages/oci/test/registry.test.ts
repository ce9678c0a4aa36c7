// A registry that misbehaves, or asks for logins: a real HTTP server on loopback.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { type Credentials, findCredentials } from '../src/credentials.ts'
import { digestOf } from '../src/document.ts'
import { fetchBlob } from '../src/fetch-blob.ts'
import { packArtifact } from '../src/pack.ts'
import { pushImage } from '../src/push.ts'
import { Repository } from '../src/registry.ts'

type Handler = (request: IncomingMessage, response: ServerResponse, body: Buffer) => void

const servers: (() => void)[] = []
afterEach(() => {
  for (const stop of servers.splice(0)) stop()
})

/** @returns `127.0.0.1:port` */
async function serve(handler: Handler): Promise<string> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => handler(request, response, Buffer.concat(chunks)))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  servers.push(() => server.close().closeAllConnections())
  return `127.0.0.1:${(server.address() as { port: number }).port}`
}

function open(registry: string, credentials?: Credentials): Repository {
  const repository = new Repository({ registry, repository: 'team/model' }, { credentials: async () => credentials })
  onTestFinished(() => repository.close())
  return repository
}
const MANIFEST = Buffer.from('{"schemaVersion":2}')
const fails = (code: string) => expect.objectContaining({ name: 'OciError', code })
const QUICK = { firstDelayMs: 1 }

describe('logins', () => {
  const user: Credentials = { username: 'me', password: 'secret' }
  const basic = `Basic ${Buffer.from('me:secret').toString('base64')}`

  it('requests a token for the scope, once', async () => {
    const asked: (string | undefined)[] = []
    const registry = await serve(({ url, headers }, response) => {
      if (url?.startsWith('/token') === true) {
        asked.push(headers.authorization, new URL(url, 'http://x').searchParams.get('scope') ?? undefined)
        return response.end('{"token":"t1"}')
      }
      if (headers.authorization === 'Bearer t1') return response.end(MANIFEST)
      const challenge = `Bearer realm="http://${registry}/token",service="s",scope="repository:team/model:pull"`
      response.writeHead(401, { 'www-authenticate': challenge }).end()
    })
    const repository = open(registry, user)
    for (let i = 0; i < 2; i++) expect((await repository.manifest('1')).digest).toBe(digestOf(MANIFEST))
    expect(asked).toEqual([basic, 'repository:team/model:pull'])
    expect(repository.usedCredentials).toBe(true)
  })

  it('an identity token is exchanged; without credentials the token is anonymous', async () => {
    const bodies: string[] = []
    const registry = await serve(({ url, method, headers }, response, body) => {
      if (url?.startsWith('/token') === true) {
        bodies.push(`${method} ${headers.authorization ?? ''}${body}`)
        return response.end('{"access_token":"t"}')
      }
      if (headers.authorization !== undefined) return response.end(MANIFEST)
      response.writeHead(401, { 'www-authenticate': `Bearer realm="http://${registry}/token"` }).end()
    })
    await open(registry, { identityToken: 'id' }).manifest('1')
    const anonymous = open(registry)
    await anonymous.manifest('1')
    expect(anonymous.usedCredentials).toBe(false)
    expect(bodies[0]).toMatch(/^POST .*refresh_token=id/)
    expect(bodies[1]).toBe('GET ')
  })

  it.each([
    ['another machine without TLS', 'http://192.0.2.1/token'],
    ['no URL', 'token'],
    ['a file', 'file:///etc/passwd'],
    ['a URL with a user', 'https://a:b@registry.example/token']
  ])('credentials do not go to %s', async (_, realm) => {
    const registry = await serve((_request, response) => {
      response.writeHead(401, { 'www-authenticate': `Bearer realm="${realm}"` }).end()
    })
    await expect(open(registry, user).manifest('1')).rejects.toEqual(fails('E_DENIED'))
  })

  it('a wrong password fails at once, without retries', async () => {
    let tries = 0
    const registry = await serve((_request, response) => {
      tries++
      response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end()
    })
    await expect(open(registry, user).manifest('1')).rejects.toEqual(fails('E_DENIED'))
    expect(tries).toBe(2)
  })

  it('requests a token for every scope that is needed, even if the challenge names less or another repository', async () => {
    const asked: string[][] = []
    const other = 'repository:other/model:pull'
    const registry = await serve(({ url, headers }, response) => {
      if (url?.startsWith('/token') === true) {
        asked.push(new URL(url, 'http://x').searchParams.getAll('scope'))
        return response.end('{"token":"t"}')
      }
      if (headers.authorization !== undefined) return response.writeHead(202).end()
      const challenge = `Bearer realm="http://${registry}/token",scope="repository:team/model:pull ${other}"`
      response.writeHead(401, { 'www-authenticate': challenge }).end()
    })
    await open(registry, user).call({ method: 'POST', target: 'blobs/uploads/', scope: 'push' })
    expect(asked).toEqual([['repository:team/model:pull,push', other]])
  })

  it('a token that expires midway is renewed', async () => {
    let issued = 0
    let uses = 0
    const registry = await serve(({ url, headers }, response) => {
      if (url?.startsWith('/token') === true) return response.end(`{"token":"t${++issued}"}`)
      // each token is good for two requests
      if (headers.authorization === `Bearer t${issued}` && uses++ < issued * 2) return response.end(MANIFEST)
      response.writeHead(401, { 'www-authenticate': `Bearer realm="http://${registry}/token"` }).end()
    })
    const repository = open(registry, user)
    for (let i = 0; i < 6; i++) await repository.manifest('1')
    expect(issued).toBeGreaterThan(1)
  })

  it('a registry without TLS, as configured, may ask for the login on its own host, and on no other', async () => {
    const seen: (string | undefined)[] = []
    const server = await serve(({ url, headers }, response) => {
      if (url?.startsWith('/token') === true) {
        seen.push(headers.authorization)
        return response.end('{"token":"t"}')
      }
      if (headers.authorization !== undefined) return response.end(MANIFEST)
      response.writeHead(401, { 'www-authenticate': `Bearer realm="http://${server}/token"` }).end()
    })
    // the same host, written so that it does not count as this machine
    const registry = server.replace('127.0.0.1', '127.1')
    const plain = new Repository(
      { registry, repository: 'team/model' },
      { plainHttp: true, credentials: async () => user }
    )
    onTestFinished(() => plain.close())
    expect((await plain.manifest('1')).digest).toBe(digestOf(MANIFEST))
    expect(seen).toEqual([basic])
  })

  it('a redirect to another path of the registry is logged in', async () => {
    const registry = await serve(({ url, headers }, response) => {
      if (headers.authorization !== basic)
        return response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end()
      if (url === '/moved') return response.end('blob')
      response.writeHead(307, { location: '/moved' }).end()
    })
    const document = await open(registry, user).document({ digest: digestOf(Buffer.from('blob')), size: 4 })
    expect(Buffer.from(document).toString()).toBe('blob')
  })

  it('redirects get no credentials', async () => {
    const seen: (string | undefined)[] = []
    const storage = await serve(({ headers }, response) => {
      seen.push(headers.authorization)
      response.end('blob')
    })
    const registry = await serve(({ headers }, response) => {
      if (headers.authorization !== basic)
        return response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end()
      response.writeHead(307, { location: `http://${storage}/x` }).end()
    })
    const document = await open(registry, user).document({ digest: digestOf(Buffer.from('blob')), size: 4 })
    expect(Buffer.from(document).toString()).toBe('blob')
    expect(seen).toEqual([undefined])
  })
})

describe('names', () => {
  it('Docker Hub is reached under its own names', () => {
    const bases = ['docker.io', 'registry.example:443'].map((registry) => {
      const repository = new Repository({ registry, repository: 'model' })
      onTestFinished(() => repository.close())
      return repository.base.href
    })
    expect(bases).toEqual(['https://registry-1.docker.io/v2/library/model/', 'https://registry.example/v2/model/'])
  })
})

describe('answers', () => {
  it("an index in Docker's own form is named in the error", async () => {
    const type = 'application/vnd.docker.distribution.manifest.list.v2+json'
    const registry = await serve(({ headers }, response) => {
      // the reference implementation converts to the first schema for clients that do not accept the second
      const takes = headers.accept?.includes(type) === true
      response.writeHead(200, { 'content-type': takes ? type : 'application/json' }).end('{"schemaVersion":1}')
    })
    await expect(open(registry).manifest('1')).rejects.toEqual(fails('E_UNSUPPORTED'))
  })

  const digest = digestOf(MANIFEST)

  it('bytes that do not match the digest, and too many bytes, are refused', async () => {
    const wrong = open(await serve((_request, response) => response.end('{}')))
    await expect(wrong.manifest(digest)).rejects.toEqual(fails('E_DIGEST_MISMATCH'))
    await expect(wrong.document({ digest, size: 2 })).rejects.toEqual(fails('E_DIGEST_MISMATCH'))
    const endless = open(
      await serve((_request, response) => {
        const more = (): void => {
          while (response.write(Buffer.alloc(1 << 20))) if (response.destroyed) return
          response.once('drain', more)
        }
        more()
      })
    )
    await expect(endless.manifest('1')).rejects.toEqual(fails('E_UNAVAILABLE'))
  })

  it.each([
    [404, 'E_NOT_FOUND'],
    [403, 'E_DENIED'],
    [429, 'E_RATE_LIMITED'],
    [500, 'E_UNAVAILABLE']
  ])('status %d is %s', async (status, code) => {
    const registry = await serve((_request, response) => {
      response.writeHead(status).end('{"errors":[{"code":"X","message":"\\u001b[31mred"}]}')
    })
    const error = await open(registry)
      .manifest('1')
      .catch((each: Error) => each)
    expect(error).toEqual(fails(code))
    expect((error as Error).message).not.toContain('\u001b')
  })
})

describe('fetchBlob', () => {
  const bytes = Buffer.from(Array.from({ length: 3_000_000 }, (_, i) => i % 251))
  const digest = digestOf(bytes)
  const sinkOf = (have: [number, number][] = []) => {
    const held = Buffer.alloc(bytes.length)
    const ranges = [...have]
    for (const [start, end] of have) bytes.copy(held, start, start, end)
    return {
      held,
      sizeBytes: bytes.length,
      ranges: () => ranges,
      write: async (offset: number, part: Uint8Array) => {
        held.set(part, offset)
        const before = ranges.find(([, end]) => end === offset)
        if (before === undefined) ranges.push([offset, offset + part.length])
        else before[1] += part.length
        ranges.sort(([a], [b]) => a - b)
        for (let i = 0; i + 1 < ranges.length; i++) {
          if (ranges[i]![1] === ranges[i + 1]![0]) ranges.splice(i, 2, [ranges[i]![0], ranges[i + 1]![1]])
        }
      }
    }
  }

  it('resumes after a cut, and fetches only missing bytes', async () => {
    const asked: (string | undefined)[] = []
    let cuts = 2
    const registry = await serve(({ headers }, response) => {
      asked.push(headers.range)
      const [start, last] = /(\d+)-(\d+)/.exec(headers.range!)!.slice(1).map(Number) as [number, number]
      const range = `bytes ${start}-${last}/${bytes.length}`
      response.writeHead(206, { 'content-range': range, 'content-length': last + 1 - start })
      if (start === 0 || cuts-- <= 0) return response.end(bytes.subarray(start, last + 1))
      response.write(bytes.subarray(start, start + 1_100_000), () => response.destroy())
    })
    const sink = sinkOf([[10, 20]])
    await fetchBlob(open(registry), digest, sink, QUICK)
    expect(sink.held.equals(bytes)).toBe(true)
    expect(asked.slice(0, 2)).toEqual(['bytes=0-9', 'bytes=20-2999999'])
    // what came before a cut is kept
    expect(asked.slice(2).every((range) => Number(/\d+/.exec(range!)![0]) > 20)).toBe(true)
    expect(asked).toHaveLength(4)
  })

  it('accepts a whole body in answer to a range request', async () => {
    const registry = await serve((_request, response) => response.end(bytes))
    const sink = sinkOf([[0, 1_000]])
    const told: number[] = []
    await fetchBlob(open(registry), digest, sink, { ...QUICK, onProgress: (done) => told.push(done) })
    // progress starts with what an earlier attempt left
    expect([told[0], told.at(-1)]).toEqual([1_000, bytes.length])
    expect(sink.held.equals(bytes)).toBe(true)
  })

  it.each<[string, Handler]>([
    [
      'another range',
      (_request, response) => void response.writeHead(206, { 'content-range': 'bytes 5-9/10' }).end('12345')
    ],
    ['encoded bytes', (_request, response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(bytes)],
    ['more than the blob has', (_request, response) => void response.end(Buffer.concat([bytes, bytes]))],
    ['less than the blob has', (_request, response) => void response.end(bytes.subarray(0, 10))],
    ['nothing', (request) => void request.socket.destroy()]
  ])('gives up on a registry that sends %s', async (_, handler) => {
    const repository = open(await serve(handler))
    await expect(fetchBlob(repository, digest, sinkOf(), { ...QUICK, tries: 2 })).rejects.toEqual(
      fails('E_UNAVAILABLE')
    )
  })
})

describe('pushImage', () => {
  it('resumes a broken chunk where the registry says', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-oci-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const bytes = Buffer.alloc(300_000, 7)
    writeFileSync(join(folder, 'a.gguf'), bytes)
    const file = {
      name: 'a.gguf',
      kind: 'weights.gguf',
      sizeBytes: bytes.length,
      digest: digestOf(bytes),
      path: join(folder, 'a.gguf')
    }
    const image = packArtifact({ files: [file], annotations: {}, manifestDigest: digestOf(bytes) })
    let upload = Buffer.alloc(0)
    const blobs = new Set<string>()
    const ranges: (string | undefined)[] = []
    let breaks = 1
    const registry = await serve(({ method, url, headers }, response, body) => {
      const location = '/v2/team/model/blobs/uploads/1'
      if (method === 'HEAD') return response.writeHead(404).end()
      if (method === 'POST') {
        upload = Buffer.alloc(0)
        return response.writeHead(202, { location }).end()
      }
      if (method === 'GET') return response.writeHead(204, { location, range: `0-${upload.length - 1}` }).end()
      if (method === 'PATCH') {
        ranges.push(headers['content-range'])
        if (body.length > 100_000 && breaks-- > 0) {
          upload = Buffer.concat([upload, body.subarray(0, 100_000)])
          return response.destroy()
        }
        upload = Buffer.concat([upload, body])
        return response.writeHead(202, { location }).end()
      }
      if (url?.includes('/manifests/') === true) return response.writeHead(201).end()
      const digest = new URL(url!, 'http://x').searchParams.get('digest')!
      if (digestOf(upload) !== digest) return response.writeHead(400).end()
      blobs.add(digest)
      response.writeHead(201).end()
    })
    const pushed = await pushImage(open(registry), 'q', image, QUICK)
    expect(pushed).toMatchObject({ digest: image.manifest.digest, presentBytes: 0 })
    expect([...blobs]).toEqual([file.digest, image.config.digest])
    expect(ranges.slice(0, 2)).toEqual(['0-299999', '100000-299999'])
  })
})

describe('findCredentials', () => {
  it('finds them where Docker keeps them: stored, in a helper, in another file', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-oci-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const config = {
      auths: {
        'one.example': { auth: Buffer.from('a:b:c').toString('base64') },
        'https://two.example/v1/': { identitytoken: 'it' },
        'bad.example': { auth: 'AAAA' },
        'many.example/team': { auth: Buffer.from('team:t').toString('base64') },
        'many.example/team/model': { auth: Buffer.from('model:m').toString('base64') },
        'many.example/other': { auth: Buffer.from('other:o').toString('base64') }
      },
      credHelpers: {
        'three.example': 'mine',
        'https://index.docker.io/v1/': 'mine',
        'none.example': 'mine',
        'fails.example': 'mine',
        'four.example': 'absent',
        'five.example': '../x'
      }
    }
    mkdirSync(join(folder, 'bin'))
    const helper = join(folder, 'bin/docker-credential-mine')
    const script = [
      '#!/bin/sh',
      'read host',
      '[ "$host" = none.example ] && echo "credentials not found in native keychain" && exit 1',
      '[ "$host" = fails.example ] && echo s3cret && exit 1',
      'printf \'{"Username":"<token>","Secret":"%s"}\' "$host"'
    ]
    writeFileSync(helper, `${script.join('\n')}\n`)
    chmodSync(helper, 0o755)
    writeFileSync(join(folder, 'config.json'), JSON.stringify(config))
    const env = { DOCKER_CONFIG: folder, PATH: `${join(folder, 'bin')}:${process.env.PATH}` }
    const find = (registry: string) => findCredentials(registry, { env })
    expect(await find('one.example')).toEqual({ username: 'a', password: 'b:c' })
    expect(await find('two.example')).toEqual({ identityToken: 'it' })
    expect(await find('three.example')).toEqual({ identityToken: 'three.example' })
    expect(await find('docker.io')).toEqual({ identityToken: 'https://index.docker.io/v1/' })
    expect(await find('six.example')).toBeUndefined()
    expect(await find('none.example')).toBeUndefined()
    const failed = await find('fails.example').catch((error: unknown) => error)
    expect(failed).toEqual(fails('E_CREDENTIALS'))
    expect(inspect(failed, { depth: 5 })).not.toContain('s3cret')
    const within = (repository: string) => findCredentials('many.example', { env, repository })
    expect(await within('team/model')).toEqual({ username: 'model', password: 'm' })
    expect(await within('team/models')).toEqual({ username: 'team', password: 't' })
    expect(await within('teams/model')).toBeUndefined()
    for (const registry of ['bad.example', 'four.example', 'five.example']) {
      await expect(find(registry)).rejects.toEqual(fails('E_CREDENTIALS'))
    }
    expect(await findCredentials('one.example', { env: {} })).toBeUndefined()
  })
})
