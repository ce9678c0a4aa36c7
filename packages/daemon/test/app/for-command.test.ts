import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from '@svc/client'
import { expect, onTestFinished, test, vi } from 'vitest'
import { startForCommand } from '../../src/app/for-command.ts'
import { temporaryFolder } from '../support/daemon.ts'

test.each([false, true])(
  'for a command (that finds peers: %s) nothing listens, and no port is kept',
  async (findsPeers) => {
    const home = temporaryFolder()
    const config = join(home, 'c.toml')
    writeFileSync(
      config,
      '[swarm]\npeer_addr = "127.0.0.1:0"\nlsd = true\ndht_bootstrap = ["127.0.0.1:1"]\n[mirror]\nhub_addr = "127.0.0.1:0"\n'
    )
    for (const [name, value] of [
      ['HOME', home],
      ['SVC_ROOT', join(home, 'store')],
      ['SVC_CONFIG', config],
      ['XDG_STATE_HOME', join(home, 'state')]
    ] as const)
      vi.stubEnv(name, value)
    mkdirSync(join(home, 'run'), { mode: 0o700 })
    const open = (): readonly string[] =>
      process.getActiveResourcesInfo().filter((name) => name === 'TCPServerWrap' || name === 'UDPWrap')
    const before = open()
    const daemon = await startForCommand(join(home, 'run/s.sock'), { findsPeers })
    onTestFinished(() => daemon.close({ quick: true }))
    expect(open()).toEqual(before)
    const client = createClient(daemon)
    const { swarm } = await client.status()
    expect([swarm.enabled, swarm.peerAddress, swarm.webseedAddress]).toEqual([true, undefined, undefined])
    expect(swarm.dhtPort !== undefined).toBe(findsPeers)
    expect(existsSync(join(home, 'store/state/ports/peer.json'))).toBe(false)
  }
)
