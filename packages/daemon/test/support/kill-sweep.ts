import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { DaemonOptions } from '../../src/index.ts'
import { type ApiClient, type TestDaemon, temporaryFolder, testDaemon } from './daemon.ts'
import { type SpawnedDaemon, spawnDaemon } from './process.ts'
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
  readonly after?: Partial<DaemonOptions>
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

/** A daemon on `<folder>/root` with what a scenario configures. */
export function spawnFor(folder: string, rig: KillRig, wrapper: readonly string[]): Promise<SpawnedDaemon> {
  const config = rig.config === undefined ? 'off.toml' : 'scenario.toml'
  if (rig.config !== undefined) writeFileSync(join(folder, config), rig.config)
  return spawnDaemon({
    folder,
    wrapper,
    ...(rig.env && { env: rig.env }),
    args: ['--root', join(folder, 'root'), '--socket', join(folder, 's.sock'), '--config', join(folder, config)]
  })
}

/** Kills at one point; whether it came to that, and whether the work was acknowledged before. */
async function killAt(
  folder: string,
  { starting }: KillScenario,
  rig: KillRig,
  call: string,
  when: number
): Promise<'killed' | 'acknowledged'> {
  const what = `${call}:signal=KILL:when=${when}`
  // -D: the daemon stays our own child, and strace goes with it.
  const wrapper = ['strace', '-D', '-f', '-o', '/dev/null', '-e', `trace=${call}`, '-e', `inject=${what}`]
  let daemon: SpawnedDaemon
  try {
    daemon = await spawnFor(folder, rig, starting ? wrapper : [])
  } catch (error) {
    if (!starting) throw error
    return 'killed'
  }
  try {
    if (starting) return 'acknowledged'
    await inject(daemon.child.pid!, what)
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

/** Declares one test for each scenario: a kill at every `stride`-th of its points. */
export function describeDaemonKills(scenarios: readonly KillScenario[], stride: number): void {
  describe.skipIf(!HAS_STRACE)('kill -9 at a system call', () => {
    for (const scenario of scenarios) {
      test(`${scenario.name}: what was acknowledged is there, the rest is old, new or can go on`, async () => {
        const template = temporaryFolder()
        const rig = await scenario.prepare(template)
        let kills = 0
        let rounds = 0
        const outcomes: Record<string, number> = {}
        const points = Object.entries(scenario.points).flatMap(([call, whens]) => whens.map((when) => ({ call, when })))
        const over = new Set<string>()
        for (const { call, when } of points.filter((_, i) => i % stride === 0)) {
          // fewer calls than that: later occurrences would tell nothing new
          if (over.has(call)) continue
          const folder = temporaryFolder()
          if (existsSync(join(template, 'root')))
            cpSync(join(template, 'root'), join(folder, 'root'), { recursive: true, preserveTimestamps: true })
          const how = await killAt(folder, scenario, rig, call, when)
          const at = `${call} ${when}, ${how}`
          const after = await testDaemon({ folder, ...rig.after })
          expect([at, (await after.verify('all')).verify]).toEqual([at, {}])
          const aftermath = await rig.check(after)
          if (how === 'acknowledged') expect([at, aftermath]).toEqual([at, 'new'])
          expect([at, (await after.verify('all')).verify]).toEqual([at, {}])
          await after.running.close({ quick: true })
          rounds++
          outcomes[`${how}, ${aftermath}`] = (outcomes[`${how}, ${aftermath}`] ?? 0) + 1
          if (how === 'killed') kills++
          else over.add(call)
        }
        console.log(`${scenario.name}: ${kills} kills in ${rounds} rounds; ${JSON.stringify(outcomes)}`)
        expect(kills).toBeGreaterThan(rounds * 0.3)
      })
    }
  })
}

/** What an error of the disk may become, by its name. */
const CODES: Readonly<Record<string, readonly string[]>> = {
  ENOSPC: ['E_NO_SPACE'],
  EDQUOT: ['E_NO_SPACE'],
  EIO: ['E_INTERNAL', 'E_CORRUPTION'],
  EMFILE: ['E_INTERNAL', 'E_SOURCE_UNAVAILABLE']
}

/** Calls that fail that way. */
const CALLS: Readonly<Record<string, readonly string[]>> = {
  ENOSPC: ['pwrite64', 'openat', 'mkdir', 'rename', 'link', 'fsync'],
  EDQUOT: ['pwrite64', 'openat', 'mkdir', 'rename', 'link'],
  EIO: ['fsync', 'pwrite64', 'pread64', 'rename', 'link', 'unlink', 'close'],
  EMFILE: ['openat']
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
      '$name: done, or refused by name; the daemon goes on, and does it afterwards',
      async (scenario) => {
        const template = temporaryFolder()
        const rig = await scenario.prepare(template)
        const outcomes: Record<string, number> = {}
        const points = CALLS[errno]!.flatMap((call) => whens.map((when) => ({ call, when })))
        for (const { call, when } of points.filter((_, i) => i % stride === 0)) {
          const folder = temporaryFolder()
          const root = join(folder, 'root')
          cpSync(join(template, 'root'), root, { recursive: true, preserveTimestamps: true })
          const daemon = await spawnFor(folder, rig, [])
          const at = `${call} ${when || 'always'}`
          const injection = await inject(
            daemon.child.pid!,
            `${call}:error=${errno}${when === 0 ? '' : `:when=${when}`}`
          )
          const code = await rig.act(daemon, root).then(
            () => 'done',
            (error: unknown) => {
              if (error instanceof Refused) return error.code
              throw error
            }
          )
          await injection.stop()
          expect([at, code]).toEqual([at, expect.toBeOneOf(['done', ...CODES[errno]!])])
          expect([at, (await daemon.verify('all')).verify]).toEqual([at, {}])
          await rig.act(daemon, root)
          expect([at, (await daemon.verify('all')).verify]).toEqual([at, {}])
          daemon.agent.destroy()
          daemon.child.kill('SIGTERM')
          expect([at, (await daemon.ended).code]).toEqual([at, 0])
          const after = await testDaemon({ folder, ...rig.after })
          expect([at, await rig.check(after)]).toEqual([at, 'new'])
          await after.running.close({ quick: true })
          outcomes[code] = (outcomes[code] ?? 0) + 1
        }
        console.log(`${errno}, ${scenario.name}: ${JSON.stringify(outcomes)}`)
      }
    )
  })
}

/** Bytes of the state file of a repository, absent where there is none. */
export function stateBytes(root: string, repo: string): Buffer | undefined {
  const path = join(root, `state/repos/${repo}.json`)
  return existsSync(path) ? readFileSync(path) : undefined
}
