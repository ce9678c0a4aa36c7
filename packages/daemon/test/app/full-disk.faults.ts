// A running daemon on a separate disk that is nearly full, with a little more room each time, so that it fills up in each phase of the work.

import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, readdirSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { temporaryFolder, testDaemon } from '../support/daemon.ts'
import { KILL_SCENARIOS } from '../support/kill-scenarios.ts'
import { type KillRig, Refused } from '../support/kill-sweep.ts'

vi.setConfig({ testTimeout: 60 * 60_000 })
const STRIDE = Number(process.env.SVC_KILL_STRIDE ?? 1)
const PAGE_BYTES = 4096
const COARSE_BYTES = 256 * 1024
const DISK_BYTES = 64 << 20
/** Below it the phases are tried page by page. */
const FINE_BYTES = 320 * 1024

function mountedDisk(): string | undefined {
  const folder = temporaryFolder()
  const args = ['-t', 'tmpfs', '-o', `size=${DISK_BYTES},mode=700`, 'tmpfs', folder]
  if (spawnSync('mount', args).status !== 0) return undefined
  onTestFinished(() => void execFileSync('umount', [folder]))
  return folder
}

function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

/** The result of the work with that much room. Whatever it is, the store is intact, and the work succeeds with enough room. */
async function withRoom(disk: string, template: string, rig: KillRig, roomBytes: number): Promise<string> {
  for (const name of readdirSync(disk)) rmSync(join(disk, name), { recursive: true })
  cpSync(join(template, 'root'), join(disk, 'root'), { recursive: true, preserveTimestamps: true })
  const daemon = await testDaemon({ folder: disk, ...rig.after })
  const ballast = join(disk, 'ballast')
  const ballastBytes = freeBytes(disk) - roomBytes
  execFileSync('fallocate', ['-l', String(ballastBytes), ballast])
  const code = await rig.act(daemon, daemon.root).then(
    () => 'done',
    (error: unknown) => {
      if (error instanceof Refused) return error.code
      throw error
    }
  )
  expect([roomBytes, code]).toEqual([roomBytes, expect.toBeOneOf(['done', 'E_NO_SPACE'])])
  expect([roomBytes, (await daemon.verify('all')).verify]).toEqual([roomBytes, {}])
  rmSync(ballast)
  await rig.act(daemon, daemon.root)
  expect([roomBytes, (await daemon.verify('all')).verify]).toEqual([roomBytes, {}])
  expect(readdirSync(join(daemon.root, 'state/tmp'))).toEqual([])
  expect([roomBytes, await rig.check(daemon)]).toEqual([roomBytes, 'new'])
  daemon.agent.destroy()
  await daemon.running.close({ quick: true })
  return code
}

test.each(KILL_SCENARIOS.filter(({ starting }) => !starting))(
  '$name: a full disk in any phase is E_NO_SPACE, and a retry with space succeeds',
  async (scenario) => {
    const disk = mountedDisk()
    if (disk === undefined || !existsSync('/usr/bin/fallocate')) {
      return expect(process.env.SVC_REQUIRE_INTEROP, 'needs root and fallocate').not.toBe('1')
    }
    const template = temporaryFolder()
    const rig = await scenario.prepare(template)
    const codes: string[] = []
    let enough = 0
    for (; ; enough += COARSE_BYTES) {
      codes.push(await withRoom(disk, template, rig, enough))
      if (codes.at(-1) === 'done') break
    }
    for (let room = Math.max(0, enough - FINE_BYTES); room < enough; room += PAGE_BYTES * STRIDE)
      codes.push(await withRoom(disk, template, rig, room))
    const refused = codes.filter((code) => code !== 'done').length
    console.log(`${scenario.name}: room for ${enough} bytes is enough; refused in ${refused} of ${codes.length} rounds`)
    expect(refused).toBeGreaterThan(0)
  }
)
