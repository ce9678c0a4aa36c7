import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { temporaryFolder } from '../support/daemon.ts'
import { KILL_SCENARIOS } from '../support/kill-scenarios.ts'
import { spawnFor } from '../support/kill-sweep.ts'
import { HAS_STRACE } from '../support/strace.ts'
import { checkOrder, traced } from '../support/sync-order.ts'

vi.setConfig({ testTimeout: 120_000 })

/** A job that says done, a tag's new digest, what a removal makes free, or a view. */
const ACKNOWLEDGED = /\\"state\\":\\"done\\"|\{\\"digest\\":|\\"tag\\":|\\"freeableBytes\\":|\\"made\\":/

test.skipIf(!HAS_STRACE).each(KILL_SCENARIOS.filter(({ starting }) => !starting))(
  '$name: files are synced before they get a name, folders before the answer',
  async (scenario) => {
    const template = temporaryFolder()
    const rig = await scenario.prepare(template)
    const folder = temporaryFolder()
    const root = join(folder, 'root')
    cpSync(join(template, 'root'), root, { recursive: true, preserveTimestamps: true })
    const daemon = await spawnFor(folder, rig)
    const calls = await traced(daemon.child.pid!, join(folder, 'calls'), () => rig.act(daemon, root))
    const { named, faults } = checkOrder(calls, root, ACKNOWLEDGED)
    expect(faults).toEqual([])
    // the state at the least; it is what the acknowledgement stands on
    expect(named.filter((path) => path.startsWith(join(root, 'state')))).not.toEqual([])
    if (/import|fill/.test(scenario.name))
      expect(named.filter((path) => path.startsWith(join(root, 'blobs'))).length).toBeGreaterThan(1)
  }
)

test('the check detects a missing sync of a file, its folder or a new folder, and a write after the sync', () => {
  const call = (name: string, text: string, at: number) => ({ call: name, text, begun: at, ended: at })
  const good = [
    call('mkdir', '"/r/a"', 1),
    call('fsync', '3</r>', 2),
    call('write', '4</r/t>, "x"', 3),
    call('fsync', '4</r/t>', 4),
    call('rename', '"/r/t", "/r/a/b"', 5),
    call('fsync', '5</r/a>', 6),
    call('write', '9<socket:[1]>, "done"', 7)
  ]
  expect(checkOrder(good, '/r', /done/)).toEqual({ named: ['/r/a/b'], faults: [] })
  for (const at of [2, 4, 6]) {
    const without = good.filter(({ begun }) => begun !== at)
    expect(checkOrder(without, '/r', /done/).faults).toHaveLength(1)
  }
  const late = [...good.slice(0, 4), call('write', '4</r/t>, "y"', 4.5), ...good.slice(4)]
  expect(checkOrder(late, '/r', /done/).faults).toEqual(['/r/t is named /r/a/b before it is synced'])
})
