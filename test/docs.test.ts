import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { ERROR_CODES, ROUTES } from '../packages/client/src/protocol.ts'
import { loadConfig } from '../packages/daemon/src/config/config.ts'
import { CONFIG_KEYS } from '../packages/daemon/src/config/keys.ts'
import { VIEWS_KEYS } from '../packages/daemon/src/config/standing.ts'
import { TRUST_KEYS } from '../packages/daemon/src/config/trust.ts'
import { WEBSEED_KEYS } from '../packages/daemon/src/config/webseed.ts'
import { CHECKS } from '../scripts/checks.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const api = read('docs/api.md')

/** Names of all fields in a JSON schema, at any depth. */
function fieldsOf(schema: unknown, found = new Set<string>()): Set<string> {
  if (typeof schema !== 'object' || schema === null) return found
  for (const [key, value] of Object.entries(schema)) {
    if (key === 'properties') Object.keys(value as object).forEach((name) => found.add(name))
    fieldsOf(value, found)
  }
  return found
}

describe('docs/api.md', () => {
  // what an answer holds, and with which codes a route fails, openapi.json says; the page says what callers send, and act on.
  test.each(Object.values(ROUTES))('$method $path with the fields that a caller sends', (route) => {
    const { method, path, query, body } = route as { method: string; path: string; query?: unknown; body?: unknown }
    expect(api.split('\n').filter((line) => line.includes(method) && line.includes(path))).not.toEqual([])
    const undocumented = [...fieldsOf([query, body])].filter((name) => !new RegExp(`\\b${name}\\b`).test(api))
    expect(undocumented).toEqual([])
  })

  test('names only codes of the protocol', () => {
    const named = new Set([...api.matchAll(/\bE_[A-Z_]+[A-Z]\b/g)].map(([code]) => code))
    expect([...named].filter((code) => !Object.hasOwn(ERROR_CODES, code))).toEqual([])
  })
})

describe('docs/configuration.md', () => {
  const page = read('docs/configuration.md')

  test('has exactly one row for each key of the file', () => {
    const rows = [...page.matchAll(/^\| `\[(\w+)\]` +\| `(\w+)` +\|/gm)].map(([, section, key]) => `${section}.${key}`)
    const keys = Object.entries(CONFIG_KEYS).flatMap(([section, each]) =>
      Object.keys(each).map((key) => `${section}.${key}`)
    )
    expect(rows.sort()).toEqual(keys.sort())
  })

  test('has exactly one row for each key of a webseed', () => {
    const part = page.slice(page.indexOf('[webseed."https://s3.example/models/"]'), page.indexOf('| Variable'))
    const rows = [...part.matchAll(/^\| `(\w+)` \|/gm)].map(([, key]) => key)
    expect(rows.sort()).toEqual(Object.keys(WEBSEED_KEYS).sort())
  })

  test('has exactly one row for each key of a trust rule', () => {
    const part = page.slice(page.indexOf('`[[trust]]`'), page.indexOf('`[[views]]`'))
    const rows = [...part.matchAll(/^\| (.*?) \|/gm)].flatMap(([, cell]) => [...cell!.matchAll(/`(\w+)`/g)])
    expect(rows.map(([, key]) => key).sort()).toEqual(Object.keys(TRUST_KEYS).sort())
  })

  test('has exactly one row for each key of a standing view', () => {
    const part = page.slice(page.indexOf('`[[views]]`'), page.indexOf('One table per web server'))
    const rows = [...part.matchAll(/^\| `(\w+)` \|/gm)].map(([, key]) => key)
    expect(rows.sort()).toEqual(Object.keys(VIEWS_KEYS).sort())
  })

  test('shows an example that the daemon reads', async () => {
    const scratch = mkdtempSync(join(tmpdir(), 'svc-docs-'))
    const file = join(scratch, 'config.toml')
    writeFileSync(file, /^```toml\n([\s\S]*?)^```/m.exec(page)?.[1] ?? 'no example')
    const config = await loadConfig({ config: file }, {})
    rmSync(scratch, { recursive: true })
    expect(config.store.root).toBe('/srv/models')
    expect(config.catalog.uploadLimitBytesPerSecond).toBe(250_000)
  })
})

test('ARCHITECTURE.md gives a reason for each dependency at run time, and for no other', () => {
  const dependencyTable = /^## Dependencies at run time$([\s\S]*)/m.exec(read('ARCHITECTURE.md'))![1]!
  const rows = [...dependencyTable.matchAll(/^\| `([^`]+)` +\| ([a-z,0-9 -]+?) +\| .{20,} \|$/gm)].map(
    ([, name, rooms]) => `${name}: ${rooms}`
  )
  const used = new Map<string, string[]>()
  // the private parts lie one folder deeper, and have no dependency at run time that their users do not have
  const rooms = readdirSync(join(root, 'packages')).filter((room) =>
    existsSync(join(root, `packages/${room}/package.json`))
  )
  for (const room of rooms) {
    const json = JSON.parse(read(`packages/${room}/package.json`)) as { private?: boolean; dependencies?: object }
    if (json.private === true) continue
    // what is bundled comes along too, though npm does not know of it
    const config = `packages/${room}/tsup.config.ts`
    const bundled = /packages: \[([^\]]*)\]/.exec(existsSync(join(root, config)) ? read(config) : '')?.[1] ?? ''
    const names = new Set([
      ...Object.keys(json.dependencies ?? {}),
      ...[...bundled.matchAll(/'([^']+)'/g)].map(([, name]) => name!)
    ])
    for (const name of [...names].filter((each) => !each.startsWith('@svc/'))) {
      used.set(name, [...(used.get(name) ?? []), room])
    }
  }
  const sorted = (rooms: string): string => rooms.split(', ').sort().join(', ')
  expect(rows.map((row) => row.replace(/: (.*)/, (_, rooms: string) => `: ${sorted(rooms)}`)).sort()).toEqual(
    [...used].map(([name, rooms]) => `${name}: ${sorted(rooms.join(', '))}`).sort()
  )
})

test('README.md names the command that runs svc and the one that runs its tests, which is what CI runs', () => {
  const commands = [...read('README.md').matchAll(/^npx --yes pnpm@10 (\w+)/gm)].map(([, name]) => name)
  expect(commands).toEqual(expect.arrayContaining(['quickstart', 'test']))
  expect(read('.ci/run')).toMatch(/npx --yes pnpm@10 test \|\|/)
})

test('CONTRIBUTING.md lists the checks', () => {
  const [, listed] = /only the checks: ([a-z, ]+) \|/.exec(read('CONTRIBUTING.md'))!
  expect(listed!.split(', ').sort()).toEqual(CHECKS.map(({ name }) => name).sort())
})

test('vectors/README.md describes every table', () => {
  const readme = read('vectors/README.md')
  const tables = readdirSync(join(root, 'vectors')).filter((name) => name.endsWith('.json'))
  expect(tables.length).toBeGreaterThan(0)
  expect(tables.filter((name) => !readme.includes(name))).toEqual([])
})

const pages = [
  ...readdirSync(root),
  ...readdirSync(join(root, 'docs'), { recursive: true }).map((name) => `docs/${String(name)}`),
  ...readdirSync(join(root, 'packages')).map((name) => `packages/${name}/README.md`),
  'vectors/README.md',
  '.changeset/README.md'
].filter((path) => path.endsWith('.md') && existsSync(join(root, path)))

/** The anchor that common renderers give a heading. */
const anchor = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-')

test.each(pages)('links of %s lead somewhere', (page) => {
  const text = read(page).replace(/^```[\s\S]*?^```/gm, '')
  const broken = [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map((match) => match[1] as string)
    .filter((link) => !/^(?:https?|mailto):/.test(link))
    .filter((link) => {
      const [path = '', fragment] = link.split('#')
      const target = path === '' ? page : join(dirname(page), path)
      if (!existsSync(join(root, target))) return true
      if (fragment === undefined) return false
      if (read(target).includes(`\n**${fragment}**`)) return false
      return ![...read(target).matchAll(/^#+ (.*)$/gm)].some((match) => anchor(match[1] as string) === fragment)
    })
  expect(broken).toEqual([])
})
