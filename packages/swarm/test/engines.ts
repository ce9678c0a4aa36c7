import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { expect } from 'vitest'
import {
  createFileStorage,
  type Swarm,
  type SwarmOptions,
  type SwarmTorrent,
  type SwarmTorrentOptions,
  type TorrentWarning
} from '../src/index.ts'
import type { ConnectionPlace } from '../src/net/connection-budget.ts'
import { type Engine, startEngine } from '../src/swarm.ts'
import type { TorrentEnvironment } from '../src/torrent/environment.ts'
import { type Fixture, makeTorrent } from './torrent-fixture.ts'

/** Of this process. */
const udpSockets = (): number => process.getActiveResourcesInfo().filter((name) => name === 'UDPWrap').length

/** Engines and torrents of one test; closed together, and checked to have kept nothing. */
export class Engines {
  readonly #swarms: Engine[] = []
  readonly #fixtures: Fixture[] = []
  readonly #others: (() => unknown)[] = []
  readonly warnings = new Map<SwarmTorrent, TorrentWarning[]>()
  /** Engines need their port for UDP as well: if another program has it, another engine is opened. */
  overUdp = false

  async open(options: SwarmOptions = {}): Promise<Engine> {
    for (let tries = 1; ; tries += 1) {
      const before = udpSockets()
      const swarm = await startEngine({ peerAddress: { host: '127.0.0.1', port: 0 }, verifyThreads: 1, ...options })
      this.#swarms.push(swarm)
      if (!this.overUdp || tries === 10) return swarm
      // a socket that could not be bound is gone after two turns of the event loop
      for (let turn = 0; turn < 2; turn += 1) await new Promise((resolve) => setImmediate(resolve))
      if (udpSockets() > before) return swarm
    }
  }

  /** A torrent whose files are removed after the engines were closed. */
  async torrent(...made: Parameters<typeof makeTorrent>): Promise<Fixture> {
    const fixture = await makeTorrent(...made)
    this.#fixtures.push(fixture)
    return fixture
  }

  /** Ends something of the test's own before the engines are closed. */
  before(end: () => unknown): void {
    this.#others.push(end)
  }

  /** A swarm that seeds the fixture. */
  async seed(
    fixture: Fixture,
    options: SwarmOptions = {},
    more: Partial<SwarmTorrentOptions> = {}
  ): Promise<{ swarm: Swarm; torrent: SwarmTorrent; address: string }> {
    const swarm = await this.open(options)
    const torrent = this.watch(
      swarm.add({
        info: fixture.info,
        pieceLayers: fixture.layers,
        storage: createFileStorage(fixture.folder, { trusted: true }),
        seedOnly: true,
        ...more
      })
    )
    return { swarm, torrent, address: `127.0.0.1:${swarm.port}` }
  }

  watch(torrent: SwarmTorrent): SwarmTorrent {
    const list: TorrentWarning[] = []
    this.warnings.set(torrent, list)
    torrent.on('warning', (warning) => list.push(warning))
    return torrent
  }

  warningsOf(torrent: SwarmTorrent): readonly TorrentWarning[] {
    return this.warnings.get(torrent)!
  }

  async close(): Promise<void> {
    await Promise.all(this.#others.splice(0).map((end) => end()))
    const swarms = this.#swarms.splice(0)
    await Promise.all(swarms.map((swarm) => swarm.close()))
    await Promise.all(this.#fixtures.splice(0).map((fixture) => fixture.remove()))
    this.overUdp = false
    for (const { environment } of swarms) expectAllIsBack(environment)
  }
}

/** Every slot and every place was given back, once: a pool takes all of its budget, and nothing more. */
function expectAllIsBack({ pool, connections }: TorrentEnvironment): void {
  const all = pool.acquire(pool.budgetBytes)
  expect(all, 'slots that were not given back').toBeDefined()
  expect(pool.acquire(1), 'a slot that was given back twice').toBeUndefined()
  const places: ConnectionPlace[] = []
  for (let host = 0; ; host += 1) {
    const place = connections.acquire('outgoing', `10.${host >> 16}.${(host >> 8) & 255}.${host & 255}`)
    if (typeof place === 'string') break
    places.push(place)
  }
  expect(places.length, 'places').toBe(connections.total)
}

/** Every file of the fixture is at `folder/<torrent name>/<path>`, byte for byte. */
export async function expectFiles(fixture: Fixture, folder: string): Promise<void> {
  for (const [file, bytes] of fixture.files) {
    const found = await readFile(path.join(folder, fixture.info.name, file))
    expect(Buffer.compare(found, bytes), file).toBe(0)
  }
}
