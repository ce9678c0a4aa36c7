import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { DaemonOptions } from '../../src/index.ts'
import { type ApiClient, type TestDaemon, temporaryFolder, testDaemon } from './daemon.ts'
import { type SpawnedDaemon, spawnDaemon } from './process.ts'
import { HAS_STRACE, inject } from './strace.ts'

/** What a scenario looks like after the kill: nothing of it happened, all of it did, or a part that can be continued. */
type Aftermath = 'old' | 'between' | 'new'

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

/** Bytes of the state file of a repository, absent where there is none. */
export function stateBytes(root: string, repo: string): Buffer | undefined {
  const path = join(root, `state/repos/${repo}.json`)
  return existsSync(path) ? readFileSync(path) : undefined
}
