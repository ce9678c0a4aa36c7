// Cuts the power under a daemon at work, again and again: whatever it acknowledged must be there afterwards, whole, and all that
// can be addressed must be right. `SVC_POWER_CUTS` cuts for each file system and way (200 without it).

import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BlockLog } from '@svc/testkit/block-log'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { type FileSystem, makeFileSystem, type PowerCut, TestDisk, whyNoPowerCuts } from '@svc/testkit/power-cut'
import { expect, onTestFinished, test, vi } from 'vitest'
import { startInspected } from '../../src/app/daemon.ts'
import { ApiClient } from '../support/daemon.ts'
import { checkAll, type PowerWork, type Promised, Shares, WORKERS, work } from '../support/power-work.ts'
import { type SpawnedDaemon, spawnDaemon } from '../support/process.ts'
import { Node } from '../swarm/nodes.ts'

vi.setConfig({ testTimeout: 4 * 3600_000 })
const CUTS = Number(process.env.SVC_POWER_CUTS ?? 200)
/** A fresh file system after so many: old ones fill up, and a young one behaves in another way. */
const CUTS_PER_DISK = 20
/** Cuts made from one recording, and recordings that go on where a cut of the one before left the disk. */
const CUTS_PER_RECORDING = 10
const RECORDINGS_PER_DISK = 4

const BASE = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()
const delay = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Repeatable: the same seed gives the same sizes, moments and losses, up to the timing of the machine. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

interface Outcome {
  cuts: number
  readonly acknowledged: Record<Promised['kind'], number>
  /** The message of the first check that found something missing. */
  loss?: unknown
}

/** One daemon at work on a disk, with what its work needs. */
class Bench {
  readonly folder: string
  readonly #hub: PowerWork['hub']
  readonly #shares: Shares
  #serial = 0

  static async create(): Promise<Bench> {
    const hub = await startFakeHub()
    onTestFinished(() => hub.close())
    const shares = new Shares(await Node.start(), 3)
    onTestFinished(() => shares.settled())
    return new Bench(hub, shares)
  }

  private constructor(hub: PowerWork['hub'], shares: Shares) {
    this.#hub = hub
    this.#shares = shares
    this.folder = mkdtempSync(join(BASE, 'svc-power-'))
    onTestFinished(() => rmSync(this.folder, { recursive: true, force: true }))
    mkdirSync(join(this.folder, 'sources'))
    writeFileSync(
      join(this.folder, 'on.toml'),
      '[swarm]\ndht = false\npeer_addr = "127.0.0.1:0"\nwebseed_addr = "127.0.0.1:0"\nfill_timeout = 30\n'
    )
  }

  start(disk: TestDisk, wrapper: readonly string[]): Promise<SpawnedDaemon> {
    const { folder } = this
    const root = join(disk.mountPoint, 'root')
    return spawnDaemon({
      folder,
      wrapper,
      // each disk is a new one at the same place
      args: ['--new', '--root', root, '--socket', join(folder, 's.sock'), '--config', join(folder, 'on.toml')],
      env: { HF_ENDPOINT: this.#hub.endpoint }
    })
  }

  /** All workers begin; resolves when all have ended. */
  async work(disk: TestDisk, client: SpawnedDaemon, promised: Promised[], isOver?: PowerWork['isOver']): Promise<void> {
    const power: PowerWork = {
      client,
      promised,
      hub: this.#hub,
      shares: this.#shares,
      sources: join(this.folder, 'sources'),
      now: () => disk.position,
      ...(isOver && { isOver })
    }
    const first = this.#serial
    this.#serial += 1_000
    await Promise.all(Array.from({ length: WORKERS }, (_, worker) => work(power, worker, first)))
  }

  /** Looks at what is left, with a daemon of this process. */
  async check(disk: TestDisk, promised: readonly Promised[]): Promise<void> {
    const running = await startInspected({
      root: join(disk.mountPoint, 'root'),
      socketPath: join(this.folder, 'check.sock'),
      fileConfig: { swarm: { enabled: false } },
      networks: {}
    })
    const client = new ApiClient(running.socketPath)
    try {
      await checkAll(client, promised)
    } finally {
      client.agent.destroy()
      await running.close({ quick: true })
    }
  }
}

async function end(daemon: SpawnedDaemon): Promise<void> {
  daemon.agent.destroy()
  daemon.child.kill('SIGKILL')
  await daemon.ended
}

function count(outcome: Outcome, promised: readonly Promised[]): void {
  for (const { kind } of promised) outcome.acknowledged[kind] += 1
}

const newOutcome = (): Outcome => ({ cuts: 0, acknowledged: { import: 0, tag: 0, fill: 0, eviction: 0 } })

/** Shuts the file system down at random moments, again and again. Ends at the first loss. */
async function shutDown(
  fileSystem: FileSystem,
  cuts: number,
  seed: number,
  wrapper: readonly string[]
): Promise<Outcome> {
  const random = randomFrom(seed)
  const bench = await Bench.create()
  const outcome = newOutcome()
  const image = join(bench.folder, 'disk')
  while (outcome.cuts < cuts && outcome.loss === undefined) {
    makeFileSystem(image, fileSystem)
    const disk = await TestDisk.mount(bench.folder, image)
    const promised: Promised[] = []
    try {
      for (let round = 0; round < CUTS_PER_DISK && outcome.cuts < cuts; round += 1) {
        const daemon = await bench.start(disk, wrapper)
        const working = bench.work(disk, daemon, promised)
        const enough = promised.length + Math.floor(random() * 6)
        const latest = performance.now() + 15_000
        while (promised.length < enough && performance.now() < latest) await delay(2)
        await delay(random() * 150)
        disk.cut()
        await end(daemon)
        await working
        await disk.powerOn()
        outcome.cuts += 1
        outcome.loss = await lossOf(bench.check(disk, promised))
        if (outcome.loss !== undefined) break
      }
    } finally {
      await disk.close()
    }
    count(outcome, promised)
    console.log(`${fileSystem}: ${outcome.cuts} cuts so far, acknowledged: ${JSON.stringify(outcome.acknowledged)}`)
  }
  return outcome
}

/** Records work on a disk, and cuts the recording at random moments and just behind acknowledgements. Ends at the first loss. */
async function cutRecordings(
  fileSystem: FileSystem,
  cuts: number,
  seed: number,
  wrapper: readonly string[]
): Promise<Outcome> {
  const random = randomFrom(seed)
  const bench = await Bench.create()
  const outcome = newOutcome()
  const [image, base, cut, log] = ['disk', 'base', 'cut', 'log'].map((name) => join(bench.folder, name)) as [
    string,
    string,
    string,
    string
  ]
  const copy = (from: string, to: string): void => void execFileSync('cp', ['--sparse=always', from, to])
  let survived: Promised[] = []
  for (let recording = 0; outcome.cuts < cuts; recording += 1) {
    if (recording % RECORDINGS_PER_DISK === 0) {
      makeFileSystem(image, fileSystem)
      survived = []
    }
    copy(image, base)
    const disk = await TestDisk.mount(bench.folder, image, log)
    const promised: Promised[] = []
    let from: number
    let to: number
    try {
      const daemon = await bench.start(disk, wrapper)
      from = disk.position
      const latest = performance.now() + 30_000
      const isOver = (): boolean => promised.length >= 40 || performance.now() > latest
      await bench.work(disk, daemon, promised, isOver)
      to = disk.position
      await end(daemon)
    } finally {
      await disk.close()
    }
    count(outcome, promised)
    const moments = Array.from({ length: Math.min(CUTS_PER_RECORDING, cuts - outcome.cuts) }, (_, n) =>
      n % 2 === 0 && promised.length > 0
        ? promised[Math.floor(random() * promised.length)]!.at
        : from + Math.floor(random() * (to - from))
    ).sort((a, b) => a - b)
    const goOnFrom = Math.floor(random() * moments.length)
    const blocks = new BlockLog(log, base)
    try {
      for (const [n, moment] of moments.entries()) {
        blocks.advanceTo(moment)
        copy(base, cut)
        blocks.cutInto(cut, random)
        const present = [...survived, ...promised.filter(({ at }) => at <= moment)]
        const after = await TestDisk.mount(bench.folder, cut)
        try {
          outcome.cuts += 1
          outcome.loss = await lossOf(bench.check(after, present))
        } finally {
          await after.close()
        }
        if (outcome.loss !== undefined) return outcome
        if (n !== goOnFrom) continue
        copy(cut, image)
        survived = present
      }
    } finally {
      blocks.close()
    }
  }
  return outcome
}

const lossOf = (checked: Promise<void>): Promise<unknown> =>
  checked.then(
    () => undefined,
    (error: unknown) => error ?? new Error('something is lost')
  )

const WAYS = { shutdown: shutDown, volatile: cutRecordings } as const satisfies Record<PowerCut, unknown>
const MATRIX: readonly (readonly [FileSystem, PowerCut])[] = [
  ['ext4', 'shutdown'],
  ['xfs', 'shutdown'],
  ['ext4', 'volatile'],
  ['xfs', 'volatile']
]

test.each(MATRIX)(`%s, %s: ${CUTS} power cuts lose nothing that was acknowledged`, async (fileSystem, kind) => {
  const why = whyNoPowerCuts(kind)
  if (why !== undefined) return expect(process.env.SVC_REQUIRE_INTEROP, why).not.toBe('1')
  const { cuts, acknowledged, loss } = await WAYS[kind](fileSystem, CUTS, 1, [])
  console.log(`${fileSystem}, ${kind}: ${cuts} cuts, acknowledged: ${JSON.stringify(acknowledged)}; loss: ${loss}`)
  if (loss !== undefined) throw loss
  expect(cuts).toBe(CUTS)
  // an import that was evicted counts as such
  expect(Object.values(acknowledged).reduce((sum, count) => sum + count)).toBeGreaterThan(CUTS)
  expect(acknowledged.eviction).toBeGreaterThan(0)
})

// The control: without fsync the same cuts must lose something, or the cuts prove nothing.
test.each(MATRIX)('%s, %s: without fsync something is lost', async (fileSystem, kind) => {
  const why = whyNoPowerCuts(kind)
  if (why !== undefined) return expect(process.env.SVC_REQUIRE_INTEROP, why).not.toBe('1')
  const { cuts, loss } = await WAYS[kind](fileSystem, 40, 2, ['eatmydata'])
  console.log(`${fileSystem}, ${kind}, without fsync: at cut ${cuts}: ${loss}`)
  expect(loss).toBeDefined()
})
