import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type BencodeDictionary, decodeBencode } from '@svc/metainfo'
import { type V1Storage, V1Swarm } from '@svc/swarm-v1'
import { ended, onFreePort } from '@svc/testkit/free-port'
import { startTracker } from '@svc/testkit/tracker'
import { afterEach, describe, expect, test } from 'vitest'

// Debian: transmission-cli transmission-daemon aria2
const has = (program: string): boolean => spawnSync(program, ['--version']).error === undefined

const undo: (() => unknown)[] = []
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step()
})

const CONTENT = new Map([
  ['config.json', Buffer.from('{"a": 1}')],
  ['model-q8_0.gguf', randomBytes((24 << 20) + 1)],
  ['sub/ü n.txt', randomBytes(16_384)]
])

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'svc-v1-clients-'))
  undo.push(() => rmSync(path, { recursive: true, force: true }))
  return path
}

function run(program: string, args: readonly string[]): ChildProcess {
  const child = spawn(program, args, { stdio: 'ignore' })
  undo.push(() => ended(child))
  return child
}

/** The program fetches into, or seeds from, `target/model`, whatever it has not yet. */
type Client = (torrent: string, target: string) => Promise<unknown>

const aria2: Client = (torrent, target) =>
  onFreePort(async (port) =>
    run('aria2c', [
      ...[
        '--no-conf',
        '--enable-dht=false',
        '--enable-dht6=false',
        '--bt-enable-lpd=false',
        '--enable-peer-exchange=false'
      ],
      ...[
        `--listen-port=${port}`,
        '--seed-ratio=0',
        '--check-integrity=true',
        '--file-allocation=none',
        '--bt-tracker-interval=2'
      ],
      ...[`--dir=${target}`, torrent]
    ])
  )

const transmission: Client = (torrent, target) =>
  onFreePort((port) =>
    onFreePort(async (rpc) => {
      const [config, watch] = [folder(), folder()]
      writeFileSync(join(watch, 'model.torrent'), readFileSync(torrent))
      const settings = { 'preferred-transport': 'tcp', 'start-added-torrents': true }
      writeFileSync(join(config, 'settings.json'), JSON.stringify(settings))
      return run('transmission-daemon', [
        ...['--foreground', '--config-dir', config, '--watch-dir', watch, '--download-dir', target, '--no-auth'],
        ...['--no-dht', '--no-lpd', '--no-portmap', '--no-utp', '--bind-address-ipv4', '127.0.0.1'],
        ...['--peerport', `${port}`, '--port', `${rpc}`, '--rpc-bind-address', '127.0.0.1']
      ])
    })
  )

class Files implements V1Storage {
  readonly files: Buffer[]
  readonly has: () => boolean
  constructor(files: Buffer[], isComplete = false) {
    this.files = files
    this.has = () => isComplete
  }
  async read(file: number, offset: number, target: Uint8Array): Promise<void> {
    target.set(this.files[file]!.subarray(offset, offset + target.length))
  }
  async write(file: number, offset: number, bytes: Uint8Array): Promise<void> {
    this.files[file]!.set(bytes, offset)
  }
}

async function given(): Promise<{
  torrent: string
  infohash: string
  tracker: string
  source: string
  info: Uint8Array
}> {
  const root = folder()
  for (const [path, bytes] of CONTENT) {
    mkdirSync(dirname(join(root, 'model', path)), { recursive: true })
    writeFileSync(join(root, 'model', path), bytes)
  }
  const tracker = await startTracker()
  undo.push(() => tracker.close())
  const torrent = join(root, 'model.torrent')
  const made = spawnSync('transmission-create', ['-s', '256', '-t', tracker.http, '-o', torrent, join(root, 'model')])
  expect(made.status).toBe(0)
  const info = (decodeBencode(readFileSync(torrent)) as BencodeDictionary).span('info')!
  return { torrent, infohash: createHash('sha1').update(info).digest('hex'), tracker: tracker.http, source: root, info }
}

async function swarm(): Promise<V1Swarm> {
  const peerAddress = { host: '127.0.0.1', port: 0 }
  const started = await V1Swarm.start({
    peerAddress,
    dht: false,
    policy: 'machine',
    uploadLimitBytesPerSecond: 0
  })
  undo.push(() => started.close())
  return started
}

describe.each([
  ['aria2', aria2, has('aria2c') && has('transmission-create')],
  ['Transmission', transmission, has('transmission-daemon') && has('transmission-create')]
] as const)('%s', (_name, client, isHere) => {
  test.skipIf(!isHere)('seeds to us', { timeout: 120_000 }, async () => {
    const { torrent, infohash, tracker, source } = await given()
    await client(torrent, source)
    let files: Files | undefined
    const joined = (await swarm()).join({
      infohash,
      trackers: [tracker],
      peers: [],
      metadataTimeoutMs: 100_000,
      open: async (layout) => (files = new Files(layout.files.map(({ sizeBytes }) => Buffer.alloc(sizeBytes)))),
      onWarning: () => undefined
    })
    const layout = await joined.ready
    await joined.done
    for (const [index, { path }] of layout.files.entries())
      expect(files!.files[index]!.equals(CONTENT.get(path)!), path).toBe(true)
  })

  test.skipIf(!isHere)('fetches from us', { timeout: 120_000 }, async () => {
    const { torrent, infohash, tracker, info } = await given()
    const joined = (await swarm()).join({
      infohash,
      info,
      complete: true,
      trackers: [tracker],
      peers: [],
      metadataTimeoutMs: 100_000,
      open: async (layout) =>
        new Files(
          layout.files.map(({ path }) => CONTENT.get(path)!),
          true
        ),
      onWarning: () => undefined
    })
    await joined.done
    const target = folder()
    await client(torrent, target)
    for (const [path, bytes] of CONTENT) {
      const isThere = (): boolean => {
        try {
          return readFileSync(join(target, 'model', path)).equals(bytes)
        } catch {
          return false
        }
      }
      await expect.poll(isThere, { timeout: 100_000, interval: 200 }).toBe(true)
    }
  })
})
