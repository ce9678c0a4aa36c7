import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../support/daemon.ts'
import { type SpawnedDaemon, spawnDaemon } from '../support/process.ts'

const ROUNDS = Number(process.env.SVC_TWO_DAEMONS ?? 100)

test(`two processes at once on one root, ${ROUNDS} times: one listens, the other is refused`, async () => {
  const folder = temporaryFolder()
  const homes = [1, 2].map((n) => join(folder, String(n)))
  for (const home of homes) mkdirSync(home)
  let first = 0
  for (let round = 0; round < ROUNDS; round++) {
    const both = await Promise.allSettled(
      homes.map((home) =>
        spawnDaemon({
          folder: home,
          args: ['--root', join(folder, 'root'), '--socket', join(home, 's.sock'), '--config', join(home, 'off.toml')]
        })
      )
    )
    expect([round, both.map(({ status }) => status).sort()]).toEqual([round, ['fulfilled', 'rejected']])
    if (both[0]!.status === 'fulfilled') first++
    for (const each of both) {
      if (each.status === 'rejected') {
        // its own exit code: the start was refused
        expect(String(each.reason)).toContain('"code":2')
        continue
      }
      const daemon: SpawnedDaemon = each.value
      expect((await daemon.get('/v1/status')).status).toBe(200)
      daemon.agent.destroy()
      daemon.child.kill('SIGKILL')
      await daemon.ended
    }
  }
  console.log(`${ROUNDS} pairs: the first one won ${first} times`)
})
