import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const CHILD = fileURLToPath(new URL('./rebinding-child.ts', import.meta.url))
const isolated = (command: string): ReturnType<typeof spawnSync> =>
  spawnSync('unshare', ['--map-root-user', '--net', 'sh', '-c', command], {
    encoding: 'utf8',
    timeout: 120_000,
    env: { ...process.env, NODE_OPTIONS: '' }
  })
const canIsolate = isolated('ip link set lo up && ip address add 8.8.8.8/32 dev lo').status === 0

// Needs unshare and ip (util-linux, iproute2), and a kernel that lets this user make a network.
test.skipIf(!canIsolate)('DNS rebinding and redirects reach no inner address', { timeout: 180_000 }, () => {
  const { stdout, stderr, status } = isolated(
    `ip link set lo up && ip address add 8.8.8.8/32 dev lo && exec ${process.execPath} --conditions=svc-source ${CHILD}`
  )
  expect([status, stderr]).toEqual([0, expect.anything()])
  const { results, named } = JSON.parse(String(stdout)) as {
    results: Record<string, { outside: number; inner: number; warnings: number }>
    named: unknown
  }
  console.log(results)
  expect(Object.keys(results)).toHaveLength(7)
  // by a tracker at a public address: to be contacted only where it is public
  expect(named).toEqual([
    { host: '10.0.0.1', allowPrivate: false },
    { host: '10.0.0.2', allowPrivate: false }
  ])
  for (const [name, { inner, outside, warnings }] of Object.entries(results))
    expect([name, inner, warnings, outside > 0]).toEqual([name, 0, 1, true])
})
