import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { FilePortModule } from '@svc/cas'
import { type Client, createClient } from '@svc/client'
import type { Job } from '@svc/client/protocol'
import type { HubOptions } from '@svc/hub'
import type { Clock } from '@svc/internal-clock'
import type { Manifest } from '@svc/manifest'
import { parseDigest, type Sha256Digest } from '@svc/ref'
import {
  type FakeHub,
  type FakeHubOptions,
  type FakeRepo,
  type FakeRepoFile,
  startFakeHub
} from '@svc/testkit/fake-hub'
import { contentChunks } from '@svc/testkit/fake-hub-content'
import { makeProjectorGguf } from '@svc/testkit/llama-gguf'
import { makeGguf, tinyTensors } from '@svc/testkit/models'
import { afterAll, afterEach } from 'vitest'
import { type InspectedDaemon, startInspected } from '../../../src/app/daemon.ts'
import { mergeConfig } from '../../../src/config/config.ts'
import type { FileConfig } from '../../../src/config/keys.ts'
import { HubJobs } from '../../../src/jobs/hub-jobs.ts'

const undo: (() => Promise<unknown>)[] = []
const undoAtEnd: (() => Promise<unknown>)[] = []

/** For a file's tests: what they made is undone after each of them. */
export function undoAfterTests(): void {
  afterEach(async () => {
    for (const step of undo.splice(0).reverse()) await step()
  })
  afterAll(async () => {
    for (const step of undoAtEnd.splice(0).reverse()) await step()
  })
}

/** What was made since the last test stays until the file's tests are over. */
export const keepForAll = (): void => void undoAtEnd.push(...undo.splice(0))

export async function tempFolder(): Promise<string> {
  // in memory where there is such a place: dozens of imports, each with its fsyncs.
  const folder = await mkdtemp(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'svc-hub-'))
  undo.push(() => rm(folder, { recursive: true, force: true }))
  return folder
}

export async function fakeHub(options: FakeHubOptions = {}): Promise<FakeHub> {
  const fake = await startFakeHub(options)
  undo.push(() => fake.close())
  return fake
}

/** Pauses pass at once, ranges are small: what takes minutes on a long-distance link takes milliseconds. */
const QUICK: Pick<HubOptions, 'limits' | 'retry'> = {
  limits: { rangeBytes: 64 << 10, writeBytes: 16 << 10, smallFileBytes: 32 << 10 },
  retry: { stallMs: 10_000, sleep: async (_delayMs, signal) => signal?.throwIfAborted() }
}

export interface Rig {
  readonly fake: FakeHub
  readonly daemon: InspectedDaemon
  readonly client: Client
  readonly root: string
  /** `host:port` of the hub's mirror, where it was asked for. */
  readonly mirror?: string
}

export interface RigOptions {
  /** `[mirror]`; `true` is that of a hub. Default none. */
  readonly mirror?: boolean | FileConfig['mirror']
  readonly root?: string
  readonly token?: string
  readonly skipUnrecognized?: boolean
  /** `[store]` */
  readonly store?: FileConfig['store']
  /** `[[trust]]` */
  readonly trust?: FileConfig['trust']
  /** `[hub] check` */
  readonly check?: string
  readonly clock?: Clock
  readonly filePort?: FilePortModule
  readonly hub?: Pick<HubOptions, 'limits' | 'retry'>
}

/** A daemon with the hub source alone, in front of a fake hub. */
export async function rigOf(fake: FakeHub, options: RigOptions = {}): Promise<Rig> {
  const root = options.root ?? (await tempFolder())
  const env = { HF_ENDPOINT: fake.endpoint, ...(options.token !== undefined && { SVC_HF_TOKEN: options.token }) }
  const fileConfig = {
    swarm: { enabled: false },
    ...(options.store && { store: options.store }),
    hub: {
      skip_unrecognized: options.skipUnrecognized ?? false,
      ...(options.check !== undefined && { check: options.check })
    },
    ...(options.mirror && { mirror: options.mirror === true ? { hub_addr: '127.0.0.1:0' } : options.mirror }),
    ...(options.trust && { trust: options.trust })
  }
  const socketPath = join(await tempFolder(), 's.sock')
  const daemon = await startInspected({
    hashThreads: 1,
    config: mergeConfig(fileConfig, { root: join(root, 'store') }, env),
    socketPath,
    ...(options.clock && { clock: options.clock }),
    ...(options.filePort && { filePort: options.filePort }),
    networks: {
      hub: (context) =>
        new HubJobs(context, {
          limits: { ...QUICK.limits, ...options.hub?.limits },
          retry: { ...QUICK.retry, ...options.hub?.retry }
        })
    }
  })
  undo.push(() => daemon.close({ quick: true }))
  const { hubMirrorAddress } = JSON.parse(await readFile(join(dirname(socketPath), 'runtime.json'), 'utf8'))
  return { fake, daemon, client: createClient({ socketPath }), root, mirror: hubMirrorAddress }
}

export const finished = async ({ client }: Rig, job: Job): Promise<Job> => client.waitJob(job, { intervalMs: 50 })

export async function importRepo(rig: Rig, repo: string, revision?: string): Promise<Job> {
  return finished(rig, await rig.client.importHf({ repo, ...(revision !== undefined && { revision }) }))
}

/** What an import made, however much of it had to be fetched. */
export function madeBy({ result }: Job) {
  const { fetchedBytes: _, ...made } = result!
  return made
}

export async function manifestsOf({ daemon }: Rig, job: Job): Promise<Manifest[]> {
  const { documents } = daemon.context
  return Promise.all(
    (job.result?.manifests ?? []).map(async (digest) => (await documents.manifest(parseDigest(digest)))!)
  )
}

/** Every blob re-hashed: what is addressable is what its name says. */
export async function wrongBlobs({ daemon }: Rig): Promise<readonly Sha256Digest[]> {
  return (await daemon.context.store.scrub()).mismatched
}

export async function storedBlobs({ daemon }: Rig): Promise<string[]> {
  const digests: string[] = []
  for await (const { digest } of daemon.context.store.list()) digests.push(digest)
  return digests
}

/** The same files on disk, for a local import. */
export async function writeRepo(files: readonly FakeRepoFile[]): Promise<string> {
  const folder = await tempFolder()
  for (const { path, content } of files) {
    const target = join(folder, path)
    await mkdir(dirname(target), { recursive: true })
    await writeFile(target, Buffer.concat([...contentChunks(content)]))
  }
  return folder
}

/** A well-formed safetensors file of one tensor. */
export function safetensors(dtype: 'BF16' | 'F16' | 'F32', elements: number, fill = 1): Uint8Array {
  const bytes = elements * (dtype === 'F32' ? 4 : 2)
  const header = Buffer.from(JSON.stringify({ w: { dtype, shape: [elements], data_offsets: [0, bytes] } }))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(header.length))
  return Buffer.concat([length, header, Buffer.alloc(bytes, fill)])
}

export const MIT = `MIT License

Copyright (c) 2026 Somebody

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
`

/** A small repository with one file of each use. */
export const SMALL: FakeRepo = {
  id: 'Some-Org/Small.Model',
  files: [
    { path: 'model-Q4_K_M.gguf', content: { seed: 1, sizeBytes: 300_007 } },
    { path: 'model-q8_0.gguf', content: { seed: 2, sizeBytes: 500_009 } },
    { path: 'config.json', content: Buffer.from('{"model_type":"llama","max_position_embeddings":4096}') },
    { path: 'tokenizer.json', content: { seed: 3, sizeBytes: 40_000 } },
    { path: 'tokenizer_config.json', content: Buffer.from('{}') },
    { path: 'LICENSE', content: Buffer.from(MIT) },
    { path: 'README.md', content: Buffer.from('# hello') },
    { path: 'extra.bin', content: { seed: 4, sizeBytes: 70_000 } }
  ]
}

const tinyGguf = (seed: number): Buffer => makeGguf({ tensors: tinyTensors('Q8_0', 128), seed })

/** 300 files as no tidy person would name them, in and beyond large-file storage. */
export function bigRepo(): FakeRepo {
  const files: FakeRepoFile[] = [
    { path: 'model-00001-of-00002.safetensors', content: safetensors('BF16', 60_000, 3) },
    { path: 'model-00002-of-00002.safetensors', content: safetensors('BF16', 90_000, 5) },
    { path: 'model.safetensors.index.json', content: Buffer.from('{"weight_map":{}}') },
    { path: 'gguf/model-q4_k_m.gguf', content: tinyGguf(11) },
    { path: 'gguf/model-q8_0-00001-of-00002.gguf', content: tinyGguf(12) },
    { path: 'gguf/model-q8_0-00002-of-00002.gguf', content: tinyGguf(13) },
    { path: 'mmproj-f16.gguf', content: makeProjectorGguf(14) },
    { path: 'lora/adapter_model.safetensors', content: safetensors('F32', 9_000, 7) },
    { path: 'lora/adapter_config.json', content: Buffer.from('{"r":8}') },
    { path: 'config.json', content: Buffer.from('{"model_type":"qwen3"}') },
    { path: 'tokenizer.json', content: { seed: 15, sizeBytes: 30_000 }, lfs: true },
    { path: 'vocab.json', content: Buffer.from('{"a":1}') },
    { path: 'merges.txt', content: new Uint8Array(0) },
    { path: 'special_tokens_map.json', content: Buffer.from('{"a":1}') },
    { path: 'chat_template.jinja', content: Buffer.from('{{ messages }}') },
    { path: 'modeling_odd #1 ?x=%20+ü 漢.py', content: Buffer.from('pass') },
    { path: 'sub dir/with %2F/modeling_same.py', content: Buffer.from('pass') },
    { path: 'LICENSE', content: Buffer.from(MIT) },
    { path: '.gitattributes', content: Buffer.from('*.gguf filter=lfs') },
    { path: 'empty', content: new Uint8Array(0) },
    { path: 'empty.large', content: new Uint8Array(0), lfs: true }
  ]
  const odd = [
    '#',
    '?',
    '%',
    '+',
    ' ',
    '%25',
    '&',
    ';',
    '=',
    ':',
    '@',
    "'",
    '"',
    '(',
    '[',
    '{',
    '^',
    '`',
    '|',
    '~',
    'ü',
    '漢',
    '🙂',
    '..x',
    '.hidden'
  ]
  for (let i = 0; files.length < 300; i++) {
    const mark = odd[i % odd.length]!
    files.push({
      path: `notes ${i % 7}/${mark}${i}${mark} file.txt`,
      content:
        i % 10 === 0 ? { seed: 100 + i, sizeBytes: 12_000 + i } : Buffer.from(i % 3 === 0 ? 'the same' : `text ${i}`)
    })
  }
  return { id: 'Odd.Org/Big_Model-7B', files }
}
