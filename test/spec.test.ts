import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { ERROR_CODES, ROUTES } from '../packages/client/src/protocol.ts'
import { CONFIG_KEYS } from '../packages/daemon/src/config/keys.ts'
import { CONFIG_QUANT_FORMATS, CONFIG_QUANT_METHODS } from '../packages/ref/src/quant.ts'

const folder = fileURLToPath(new URL('../docs/spec/', import.meta.url))
const pages = new Map(
  readdirSync(folder)
    .filter((name) => name !== 'README.md')
    .map((name) => [name, readFileSync(folder + name, 'utf8')])
)

/** The text of one clause, up to the next one. */
function clause(id: string): string {
  for (const text of pages.values()) {
    const [, rest] = text.split(new RegExp(`^\\*\\*${id.replace('.', '\\.')}\\*\\*`, 'm'))
    if (rest !== undefined) return rest.split(/^(?:\*\*[a-z]+\.\d+\*\*|#)/m)[0] as string
  }
  throw new Error(`there is no clause ${id}`)
}

test('the codes of the contract are those of the protocol, with their statuses', () => {
  const rows = [...clause('err.2').matchAll(/^\| `(E_[A-Z_]+)` +\| ([\w ]+?) +\|/gm)].map(([, code, status]) => [
    code,
    status
  ])
  const codes = Object.entries(ERROR_CODES).map(([code, { status }]) => [
    code,
    status === 'job' ? 'job only' : String(status)
  ])
  expect(rows.sort()).toEqual(codes.sort())
})

test.each(Object.values(ROUTES))('$method $path is in the contract', ({ method, path }) => {
  const lines = [...pages.values()].flatMap((text) => text.split('\n'))
  const name = new RegExp(`${path.replaceAll(/[{}]/g, '\\$&')}(?![\\w/])`)
  expect(lines.filter((line) => line.includes(method) && name.test(line))).not.toEqual([])
})

test('every key of the configuration file is in the contract', () => {
  const page = pages.get('configuration.md') ?? ''
  const keys = Object.entries(CONFIG_KEYS).flatMap(([section, each]) =>
    Object.keys(each).map((key) => ({ section: `[${section}]`, key }))
  )
  expect(keys.length).toBeGreaterThan(10)
  const lacking = keys.filter(
    ({ section, key }) => !page.includes(section) || !new RegExp(`[\`\\] ]${key}\``).test(page)
  )
  expect(lacking).toEqual([])
})

test('the words of a config.json are those that are recognised', () => {
  const words = [...clause('rec.17').matchAll(/`([a-z0-9_\-\s]+)`/g)].map((match) =>
    (match[1] as string).trim().split(/\s+/)
  )
  expect(words.slice(0, 2)).toEqual([[...CONFIG_QUANT_METHODS], [...CONFIG_QUANT_FORMATS]])
})
