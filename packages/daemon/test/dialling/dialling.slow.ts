import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'

const CHILD = fileURLToPath(new URL('./child.ts', import.meta.url))
const RESOLVER = fileURLToPath(new URL('./resolver.ts', import.meta.url))

type Result = readonly [said: unknown, dialled: readonly string[], asked: number]

interface Said {
  readonly results: Record<string, Record<string, Result>>
  /** By door and place of the server that names them: the addresses that are reached. */
  readonly table: Record<string, Record<string, string[]>>
}

/** What each client does about each host, as `child.ts` says it. */
function said(): Said {
  const folder = mkdtempSync(join(tmpdir(), 'svc-dialling-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const dialled = join(folder, 'dialled')
  writeFileSync(dialled, '')
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    ['--conditions=svc-source', '--import', RESOLVER, CHILD],
    { encoding: 'utf8', timeout: 60_000, env: { ...process.env, NODE_OPTIONS: '', SVC_TEST_DIALLED: dialled } }
  )
  expect([status, stderr]).toEqual([0, expect.anything()])
  return JSON.parse(stdout) as Said
}

test('no client dials an address that only the owner may name (spec hub.8), by address or by name; each keeps the table of SECURITY.md', () => {
  const { results: all, table } = said()
  const { 'the word of the owner': owner, 'a socket': socket, ...others } = all
  const { 'redirects of a hub in the open': inTheOpen, ...doors } = others
  expect(Object.keys(doors)).toHaveLength(12)
  for (const [name, { '8.8.8.8': open, 'loopback.test': loopback, ...refused }] of Object.entries(doors)) {
    // each can dial: it is the guard that keeps the others away
    expect([name, new Set(open![1])]).toEqual([name, new Set(['8.8.8.8'])])
    expect(Object.keys(refused)).toHaveLength(6)
    for (const [host, [said, dialled, asked]] of Object.entries(refused)) {
      expect([name, host, dialled, asked]).toEqual([name, host, [], 0])
      expect([name, host, said]).not.toEqual([name, host, 'done'])
    }
    if (loopback !== undefined) expect([name, loopback[2]]).toEqual([name, 1])
  }
  // a server in the open that adds a loopback address to its name may not name what is on this machine for that
  expect(inTheOpen!['loopback.test']!.slice(1)).toEqual([[], 0])
  // what the owner named is dialled, wherever it is; and the child sees what is dialled
  expect(owner!['inner.test']![1]).toContain('169.254.7.7')
  expect(owner!['mixed.test']![2]).toBeGreaterThan(0)
  expect(socket!['169.254.7.7']).toEqual(['ENETUNREACH', ['169.254.7.7'], 0])
  const [open, inner, own] = ['8.8.8.8', '10.1.1.1', '127.0.0.1']
  const everywhere = { machine: [open, inner, own], network: [open, inner], internet: [open] }
  const byDoor = Object.keys(doors).map((name) => [
    name,
    name === 'redirects of a webseed' ? { machine: [open], network: [open], internet: [open] } : everywhere
  ])
  expect(table).toEqual(Object.fromEntries(byDoor))
})

test('names are resolved in one place', () => {
  const packages = fileURLToPath(new URL('../../../', import.meta.url))
  const folders = readdirSync(packages).flatMap((name) =>
    name === 'internal' ? readdirSync(join(packages, name)).map((inner) => `${name}/${inner}/src`) : [`${name}/src`]
  )
  const sources = folders
    .filter((folder) => folder !== 'testkit/src')
    .flatMap((folder) =>
      readdirSync(join(packages, folder), { recursive: true, encoding: 'utf8' })
        .filter((path) => path.endsWith('.ts'))
        .map((path) => `${folder}/${path}`)
    )
  expect(sources.length).toBeGreaterThan(500)
  const resolving = sources.filter((path) =>
    /'(?:node:)?dns(?:\/promises)?'/.test(readFileSync(join(packages, path), 'utf8'))
  )
  // the page asks whether this machine knows *.localhost, and listens there: it dials nothing
  expect(resolving).toEqual(['internal/bridge/src/page-host.ts', 'internal/net/src/dial-guard.ts'])
})
