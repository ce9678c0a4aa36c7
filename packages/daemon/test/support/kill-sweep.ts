import { once } from 'node:events'
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { InspectedOptions } from '../../src/app/daemon.ts'
import { type ApiClient, type TestDaemon, temporaryFolder, testDaemon } from './daemon.ts'
import { type SpawnedDaemon, type SpawnOptions, spawnDaemon } from './process.ts'
import { HAS_STRACE, inject } from './strace.ts'

/** What a scenario looks like after the kill: nothing of it happened, all of it did, or a part that can be continued. */
type Aftermath = 'old' | 'between' | 'new'

/** What a living daemon answers when it cannot do something. */
export class Refused extends Error {
  readonly code: string

  constructor({ code, message }: { readonly code: string; readonly message: string }) {
    super(`${code}: ${message}`)
    this.code = code
  }
}

export interface KillRig {
  /** TOML; without it the swarm is off. */
  readonly config?: string
  readonly env?: Readonly<Record<string, string>>
  /** The daemon that looks at what is left. */
  readonly after?: Partial<InspectedOptions>
  /** Works, and resolves once the daemon said that it is done. */
  readonly act: (daemon: ApiClient, root: string) => Promise<void>
  /** What must hold in the daemon after the next start, over `verify`; then finishes the work. */
  readonly check: (after: TestDaemon) => Promise<Aftermath>
}

export interface KillScenario {
  readonly name: string
  /** Makes `<folder>/root` as it is before. */
  readonly prepare: (folder: string) => Promise<KillRig>
  /** System call to the occurrences (counted by thread) at which the daemon is killed. */
  readonly points: Readonly<Record<string, readonly number[]>>
  /** Calls are counted from the start of the process: what is killed is the start itself. */
  readonly starting?: boolean
}

const KILLED_MAIN = new URL('./killed-daemon.ts', import.meta.url).pathname

/** A daemon on `<folder>/root` with what a scenario configures. */
export function spawnFor(folder: string, rig: KillRig, options: Partial<SpawnOptions> = {}): Promise<SpawnedDaemon> {
  const config = rig.config === undefined ? 'off.toml' : 'scenario.toml'
  if (rig.config !== undefined) writeFileSync(join(folder, config), rig.config)
  return spawnDaemon({
    folder,
    ...options,
    env: { ...rig.env, ...options.env },
    args: ['--root', join(folder, 'root'), '--socket', join(folder, 's.sock'), '--config', join(folder, config)]
  })
}

/**
 * When to kill: at a system call, by its name and its number in the thread that comes to it first; or before an operation of the file
 * port that changes something, by its number over all threads.
 */
type KillPoint = { readonly call: string; readonly when: number } | { readonly call?: undefined; readonly when: number }

/** Starts a daemon to be killed at a point; for a scenario that is not a start, the count begins when this resolves. */
async function doomed(
  folder: string,
  { starting }: KillScenario,
  rig: KillRig,
  { call, when }: KillPoint
): Promise<SpawnedDaemon> {
  if (call === undefined) {
    if (starting) return spawnFor(folder, rig, { main: KILLED_MAIN, env: { KILL_AT: String(when) } })
    const daemon = await spawnFor(folder, rig, { main: KILLED_MAIN })
    const armed = once(daemon.child, 'message')
    daemon.child.send(when)
    await armed
    return daemon
  }
  const what = `${call}:signal=KILL:when=${when}`
  if (starting) {
    // -D: the daemon stays our own child, and strace goes with it.
    const wrapper = ['strace', '-D', '-f', '-o', '/dev/null', '-e', `trace=${call}`, '-e', `inject=${what}`]
    return spawnFor(folder, rig, { wrapper })
  }
  const daemon = await spawnFor(folder, rig)
  await inject(daemon.child.pid!, what)
  return daemon
}

/** Kills at one point; whether it came to that, and whether the work was acknowledged before. */
async function killAt(
  folder: string,
  scenario: KillScenario,
  rig: KillRig,
  point: KillPoint
): Promise<'killed' | 'acknowledged'> {
  const { starting } = scenario
  let daemon: SpawnedDaemon
  try {
    daemon = await doomed(folder, scenario, rig, point)
  } catch (error) {
    if (!starting) throw error
    return 'killed'
  }
  try {
    if (starting) return 'acknowledged'
    const ended = daemon.ended.then(() => 'killed' as const)
    return await Promise.race([
      ended,
      rig.act(daemon, join(folder, 'root')).then(
        () => 'acknowledged' as const,
        // the connection breaks a moment before the process is gone; a refusal of a living daemon is a defect
        async (error: unknown) => {
          const late = new Promise<never>((_, reject) => setTimeout(reject, 10_000, error))
          return Promise.race([ended, late])
        }
      )
    ])
  } finally {
    daemon.agent.destroy()
    daemon.child.kill('SIGKILL')
    await daemon.ended
  }
}

/** A scenario that is prepared once, and then killed at one point after another. */
class KillRun {
  readonly #template: string
  readonly #scenario: KillScenario
  readonly #rig: KillRig
  kills = 0
  rounds = 0
  readonly outcomes: Record<string, number> = {}

  static async prepare(scenario: KillScenario): Promise<KillRun> {
    const template = temporaryFolder()
    return new KillRun(template, scenario, await scenario.prepare(template))
  }

  private constructor(template: string, scenario: KillScenario, rig: KillRig) {
    this.#template = template
    this.#scenario = scenario
    this.#rig = rig
  }

  /** Kills at a point and looks at what is left. */
  async at(point: KillPoint): Promise<'killed' | 'acknowledged'> {
    const rig = this.#rig
    const folder = temporaryFolder()
    if (existsSync(join(this.#template, 'root')))
      cpSync(join(this.#template, 'root'), join(folder, 'root'), { recursive: true, preserveTimestamps: true })
    const how = await killAt(folder, this.#scenario, rig, point)
    const at = `${point.call ?? 'operation'} ${point.when}, ${how}`
    const after = await testDaemon({ folder, ...rig.after })
    expect([at, (await after.verify('all')).verify]).toEqual([at, {}])
    const aftermath = await rig.check(after).catch((cause: unknown) => {
      throw new Error(`wrong after ${at}`, { cause })
    })
    if (how === 'acknowledged') expect([at, aftermath]).toEqual([at, 'new'])
    expect([at, (await after.verify('all')).verify]).toEqual([at, {}])
    await after.running.close({ quick: true })
    rmSync(folder, { recursive: true })
    this.rounds += 1
    if (how === 'killed') this.kills += 1
    const outcome = `${how}, ${aftermath}`
    this.outcomes[outcome] = (this.outcomes[outcome] ?? 0) + 1
    return how
  }
}

/** `SVC_FAULT_CALLS='openat|close'` tries these calls alone: shards of a long sweep, or what is being mended. */
const ONLY = new RegExp(process.env.SVC_FAULT_CALLS ?? '')

/** More than any scenario makes. `SVC_KILL_POINTS=100` takes the first hundred of each kind, however slow the machine is. */
const MAX_POINTS = Number(process.env.SVC_KILL_POINTS ?? 2_000)
const EVERY: readonly number[] = Array.from({ length: MAX_POINTS }, (_, n) => n + 1)

/**
 * Declares one test for each scenario: a kill before every operation that changes a file of store, state or leaf layers, in the order in
 * which all threads come to them, or before every `stride`-th one.
 */
export function describeOperationKills(scenarios: readonly KillScenario[], stride: number): void {
  describe('kill -9 before an operation that changes a file', () => {
    test.each(scenarios)('$name: acknowledged results survive; the rest is old, new or resumable', async (scenario) => {
      const run = await KillRun.prepare(scenario)
      for (let when = 1; when < MAX_POINTS; when += stride) if ((await run.at({ when })) === 'acknowledged') break
      console.log(`${scenario.name}: killed before ${run.kills} operations; ${JSON.stringify(run.outcomes)}`)
      expect(run.kills).toBeGreaterThan(0)
      if (process.env.SVC_KILL_POINTS === undefined) expect(run.rounds).toBe(run.kills + 1)
    })
  })
}

/**
 * Declares one test for each scenario: a kill at every `stride`-th of its points; with `all`, at its system calls, each one from the first to
 * the last that a thread comes to.
 */
export function describeDaemonKills(
  scenarios: readonly KillScenario[],
  stride: number,
  { all = false }: { readonly all?: boolean } = {}
): void {
  describe.skipIf(!HAS_STRACE)('kill -9 at a system call', () => {
    test.each(scenarios)('$name: acknowledged results survive; the rest is old, new or resumable', async (scenario) => {
      const run = await KillRun.prepare(scenario)
      const points = Object.entries(scenario.points)
        .filter(([call]) => ONLY.test(call))
        .flatMap(([call, whens]) => (all ? EVERY : whens).map((when) => ({ call, when })))
      const over = new Set<string>()
      for (const point of points.filter((_, i) => i % stride === 0)) {
        // fewer calls than that: later occurrences would tell nothing new
        if (over.has(point.call)) continue
        if ((await run.at(point)) === 'acknowledged') over.add(point.call)
      }
      console.log(`${scenario.name}: ${run.kills} kills in ${run.rounds} rounds; ${JSON.stringify(run.outcomes)}`)
      // with `all`, each kind of call ends with a round that it does not come to
      expect(run.kills).toBeGreaterThan(all ? 0 : run.rounds * 0.3)
    })
  })
}

/** What an error of the disk may become, by its name. */
const CODES: Readonly<Record<string, readonly string[]>> = {
  ENOSPC: ['E_NO_SPACE'],
  EDQUOT: ['E_NO_SPACE'],
  EIO: ['E_INTERNAL', 'E_CORRUPTION'],
  EMFILE: ['E_INTERNAL']
}

/** Calls that fail that way. */
const CALLS: Readonly<Record<string, readonly string[]>> = {
  ENOSPC: ['pwrite64', 'openat', 'mkdir', 'rename', 'link', 'fsync'],
  EDQUOT: ['pwrite64', 'openat', 'mkdir', 'rename', 'link'],
  EIO: ['fsync', 'pwrite64', 'pread64', 'rename', 'link', 'unlink', 'close'],
  EMFILE: ['openat']
}

/** A call to fail, with which error: at its `when`-th occurrence in a thread, or at each one (0). */
interface ErrorPoint {
  readonly errno: string
  readonly call: string
  readonly when: number
  /** The point in words. */
  readonly at: string
}

/** Node itself ended the process, which then has to be what a kill leaves. */
const ABORTED = 'ended by Node'

/**
 * Node asserts that the description of a package can be closed, which none on a local disk refuses, and ends the process where
 * it cannot. @returns the signal; undefined when the daemon lives
 */
async function abortedBy(daemon: SpawnedDaemon): Promise<'SIGABRT' | undefined> {
  const late = new Promise<undefined>((resolve) => setTimeout(resolve, 20_000, undefined))
  const how = await Promise.race([daemon.ended, late])
  return how?.signal === 'SIGABRT' ? how.signal : undefined
}

/** Fails calls of a daemon at work, and looks at what it says, does and leaves. @returns the code that it gave, or `done` */
async function failAt(template: string, rig: KillRig, { errno, call, when, at }: ErrorPoint): Promise<string> {
  const folder = temporaryFolder()
  const root = join(folder, 'root')
  cpSync(join(template, 'root'), root, { recursive: true, preserveTimestamps: true })
  // Node ends the process where a file of its compile cache, which only tests have, cannot be closed
  const daemon = await spawnFor(folder, rig, { env: { NODE_COMPILE_CACHE: '' } })
  const injection = await inject(daemon.child.pid!, `${call}:error=${errno}${when === 0 ? '' : `:when=${when}`}`)
  let said = ''
  try {
    const code = await rig.act(daemon, root).then(
      () => 'done',
      async (error: unknown) => {
        if (!(error instanceof Refused)) {
          await injection.stop()
          if (call === 'close' && (await abortedBy(daemon)) !== undefined) return ABORTED
          throw error
        }
        said = error.message
        return error.code
      }
    )
    await injection.stop()
    // whoever reads it learns what is wrong with the disk
    if (code === 'E_INTERNAL') expect([at, said]).toEqual([at, expect.stringContaining(`(${errno})`)])
    expect([at, code, said]).toEqual([at, expect.toBeOneOf(['done', ABORTED, ...CODES[errno]!]), said])
    if (code !== ABORTED) {
      expect([at, (await daemon.verify('all')).verify]).toEqual([at, {}])
      await rig.act(daemon, root)
      expect([at, (await daemon.verify('all')).verify]).toEqual([at, {}])
      daemon.agent.destroy()
      daemon.child.kill('SIGTERM')
      expect([at, (await daemon.ended).code]).toEqual([at, 0])
    }
    const after = await testDaemon({ folder, ...rig.after })
    expect([at, (await after.verify('all')).verify]).toEqual([at, {}])
    const aftermath = await rig.check(after)
    if (code !== ABORTED) expect([at, aftermath]).toEqual([at, 'new'])
    await after.running.close({ quick: true })
    rmSync(folder, { recursive: true })
    return code
  } catch (error) {
    const logged = daemon.log.filter(({ level }) => level !== 'info')
    const { exitCode, signalCode } = daemon.child
    throw Object.assign(error as Error, { said, logged, exitCode, signalCode })
  } finally {
    await injection.stop()
    daemon.agent.destroy()
    daemon.child.kill('SIGKILL')
    await daemon.ended
  }
}

/**
 * Declares one test for each scenario and error: a system call fails, at its first occurrence in a thread and at later ones, every
 * `stride`-th of them; 0 in `when` stands for each call until the daemon gives up.
 */
export function describeDaemonErrors(
  scenarios: readonly KillScenario[],
  whens: readonly number[],
  stride: number
): void {
  describe.skipIf(!HAS_STRACE).each(Object.keys(CODES))('%s from a system call', (errno) => {
    test.each(scenarios.filter(({ starting }) => !starting))(
      '$name: done or refused with its code; the daemon continues and succeeds afterwards',
      async (scenario) => {
        const template = temporaryFolder()
        const rig = await scenario.prepare(template)
        const outcomes: Record<string, number> = {}
        const wrong: unknown[] = []
        const points = CALLS[errno]!.filter((call) => ONLY.test(call)).flatMap((call) =>
          whens.map((when) => ({ call, when }))
        )
        for (const { call, when } of points.filter((_, i) => i % stride === 0)) {
          const at = `${call} ${when || 'always'}`
          try {
            const code = await failAt(template, rig, { errno, call, when, at })
            outcomes[code] = (outcomes[code] ?? 0) + 1
          } catch (cause) {
            // the points behind it are of interest as well
            wrong.push({ at, cause })
            console.log(`wrong at ${errno} of ${at}, ${scenario.name}`, cause)
          }
        }
        console.log(`${errno}, ${scenario.name}: ${JSON.stringify(outcomes)}`)
        expect(wrong).toEqual([])
      }
    )
  })
}

/** Bytes of the state file of a repository, absent where there is none. */
export function stateBytes(root: string, repo: string): Buffer | undefined {
  const path = join(root, `state/repos/${repo}.json`)
  return existsSync(path) ? readFileSync(path) : undefined
}
