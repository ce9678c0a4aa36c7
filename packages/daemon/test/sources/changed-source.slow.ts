// A source whose file is replaced by another of the same length while it is fetched: between a broken connection and its resume, between two
// imports, between parallel ranges. Whatever comes of an import, the next one gets the right bytes, and begins with none of the others.
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Job } from '@svc/client/protocol'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Answer, contentOf, startWebseed } from '../swarm/fake-webseed.ts'
import { Node, pinned, weights } from '../swarm/nodes.ts'
import { fakeHub, importRepo, type Rig, rigOf, storedBlobs, undoAfterTests } from './hub/fixtures.ts'

undoAfterTests()

const NAME = 'model-q8_0.gguf'
const digestOf = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

/** How the n-th request for the file is answered; n counts from 0 in each import. */
interface Step {
  /** Default: the right bytes. */
  readonly isOther?: boolean
  /** The connection breaks in the middle of the body. */
  readonly isCut?: boolean
  readonly status?: number
}
type Plan = (n: number) => Step

/** A file and its replacement. */
class ChangingFile {
  readonly right: Buffer
  readonly #other: Buffer
  readonly #etagTells: boolean
  #plan: Plan = () => ({})
  /** Where the bodies of this import began. */
  starts: number[] = []

  constructor(seed: number, etagTells: boolean) {
    this.right = weights((3 << 20) + 7, seed)
    this.#other = Buffer.from(this.right.map((byte) => byte ^ 0xff))
    this.#etagTells = etagTells
  }

  begin(plan: Plan): void {
    this.#plan = plan
    this.starts = []
  }

  answer(request: IncomingMessage, response: ServerResponse): void {
    const { isOther = false, isCut = false, status } = this.#plan(this.starts.length)
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? []
    const [start, end] = from === undefined ? [0, this.right.length] : [Number(from), Number(to) + 1]
    this.starts.push(start)
    if (status !== undefined) return void response.writeHead(status, { 'content-length': '0' }).end()
    const body = (isOther ? this.#other : this.right).subarray(start, end)
    response.writeHead(from === undefined ? 200 : 206, {
      'content-length': body.length,
      etag: isOther && this.#etagTells ? '"other"' : '"right"',
      ...(from !== undefined && { 'content-range': `bytes ${start}-${end - 1}/${this.right.length}` })
    })
    if (isCut) response.write(body.subarray(0, body.length >> 1), () => response.socket?.destroySoon())
    else response.end(body)
  }
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

interface Place {
  import(): Promise<Job>
  stored(): Promise<readonly string[]>
}

async function hub(file: ChangingFile, rangesPerFile: number): Promise<Place> {
  const cdn = await listen(createServer((request, response) => file.answer(request, response)))
  const repo = { id: 'Some-Org/Model', files: [{ path: NAME, content: file.right }] }
  const fake = await fakeHub({ repos: [repo], cdnAddress: () => `http://${cdn}/file` })
  const rig: Rig = await rigOf(fake, { hub: { limits: { rangeBytes: 256 << 10, rangesPerFile } } })
  return { import: () => importRepo(rig, repo.id), stored: () => storedBlobs(rig) }
}

async function registry(file: ChangingFile): Promise<Place> {
  const empty = Buffer.from('{}')
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      artifactType: 'application/vnd.cncf.model.manifest.v1+json',
      config: { mediaType: 'application/vnd.cncf.model.config.v1+json', digest: digestOf(empty), size: empty.length },
      layers: [
        {
          mediaType: 'application/vnd.cncf.model.weight.v1.raw',
          digest: digestOf(file.right),
          size: file.right.length,
          annotations: { 'org.cncf.model.filepath': NAME }
        }
      ]
    })
  )
  const address = await listen(
    createServer((request, response) => {
      const { url, method } = request
      if (url!.includes('/manifests/'))
        return void response
          .writeHead(200, { 'content-type': 'application/vnd.oci.image.manifest.v1+json' })
          .end(manifest)
      if (url!.endsWith(digestOf(empty))) return void response.end(empty)
      if (method === 'HEAD') return void response.writeHead(200).end()
      file.answer(request, response)
    })
  )
  const node = await Node.start()
  return {
    import: async () =>
      node.done(await node.client.importOci({ image: `${address}/a/b:v1`, as: 'me/model', plainHttp: true })),
    stored: () => storedBlobs({ daemon: node.running } as Rig)
  }
}

async function webseed(file: ChangingFile): Promise<Place> {
  const owner = await Node.start()
  const share = await owner.publish({ [NAME]: file.right })
  const content = await contentOf(share)
  await owner.stop()
  const answer: Answer = (path, request, response) => {
    if (!path.endsWith(NAME)) return false
    file.answer(request, response)
    return true
  }
  const { url } = await startWebseed(content, answer)
  const node = await Node.start({ swarm: { fill_timeout: 2 } })
  return {
    import: () => node.importBt(pinned(share, { webseeds: [url], peers: [] })),
    stored: () => storedBlobs({ daemon: node.running } as Rig)
  }
}

const PLACES: Readonly<Record<string, (file: ChangingFile) => Promise<Place>>> = {
  'the hub': (file) => hub(file, 1),
  'the hub, in parallel ranges': (file) => hub(file, 8),
  'a registry': registry,
  'a webseed': webseed
}

interface Scenario {
  readonly plan: Plan
  /** What becomes of the import where a wrong file is fetched again, whether its ETag tells or not. A webseed is left alone instead. */
  readonly becomes: 'done' | RegExp
  /** Wrong bytes are noticed only by the next import, which continues behind them first. */
  readonly isNoticedLater?: true
}
const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'the first half was of another file': { plan: (n) => ({ isOther: n === 0, isCut: n === 0 }), becomes: 'done' },
  'one resume is of another file': { plan: (n) => ({ isOther: n === 1, isCut: n === 0 }), becomes: 'done' },
  'it is another file from the first resume on': {
    plan: (n) => ({ isOther: n > 0, isCut: n === 0 }),
    becomes: /"model-q8_0\.gguf" was fetched twice.*changed/
  },
  'each second answer is of another file': {
    plan: (n) => ({ isOther: n % 2 === 1, isCut: n < 4 }),
    becomes: /"model-q8_0\.gguf" (?:was fetched twice.*changed|keeps changing)/
  },
  'the first half was of another file, and then it is gone': {
    plan: (n) => (n === 0 ? { isOther: true, isCut: true } : { status: 404 }),
    becomes: /404|does not have/,
    isNoticedLater: true
  }
}

let seed = 100
describe.each(Object.entries(PLACES))('%s', (name, start) => {
  // who reads no ETag needs no other
  describe.each(name.startsWith('the hub') ? [true, false] : [true])('an ETag that tells: %s', (etagTells) => {
    test.each(Object.entries(SCENARIOS))('%s', async (_, { plan, becomes, isNoticedLater }) => {
      const file = new ChangingFile(seed++, etagTells)
      const digest = digestOf(file.right)
      const place = await start(file)
      file.begin(plan)
      const job = await place.import()
      const isWebseed = name === 'a webseed'
      if (becomes === 'done' && !isWebseed) expect(job).toMatchObject({ state: 'done' })
      else {
        expect(job).toMatchObject({ state: 'failed' })
        expect(job.error!.message).toMatch(
          isWebseed || becomes === 'done' ? /webseed http.*model-q8_0\.gguf: / : becomes
        )
        expect(await place.stored()).not.toContain(digest)
      }

      file.begin(() => ({}))
      expect(await place.import()).toMatchObject({ state: 'done' })
      expect(await place.stored()).toContain(digest)
      // no byte of a file that was found wrong is kept
      if (job.state === 'failed' && !isWebseed && !isNoticedLater) expect(file.starts).toContain(0)
    })
  })
})
