import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'

const CHILD = fileURLToPath(new URL('./inner-webseed-child.ts', import.meta.url))
const NETWORK = 'ip link set lo up && ip address add 8.8.8.8/32 dev lo'
const isolated = (command: string, env: NodeJS.ProcessEnv = {}): ReturnType<typeof spawnSync> =>
  spawnSync('unshare', ['--map-root-user', '--net', 'sh', '-c', command], {
    encoding: 'utf8',
    timeout: 120_000,
    env: { ...process.env, NODE_OPTIONS: '', ...env }
  })
const canIsolate = isolated(NETWORK).status === 0

// Needs unshare and ip (util-linux, iproute2), and a kernel that lets this user make a network.
test.skipIf(!canIsolate)(
  'a catalog on the internet cannot name a webseed inside the network, by address or by name',
  { timeout: 180_000 },
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-inner-webseed-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const { stdout, stderr, status } = isolated(
      `${NETWORK} && exec ${process.execPath} --conditions=svc-source ${CHILD}`,
      { TMPDIR: folder }
    )
    expect([status, stderr]).toEqual([0, expect.anything()])
    // the anchor's own hub, which the user configured, gave the bytes
    const done = { asked: 0, state: 'done' }
    expect(JSON.parse(String(stdout))).toEqual({ '127.0.0.1': done, 'seed.example': done })
  }
)
