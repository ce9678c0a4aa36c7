import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { ERROR_CODES } from '../packages/client/src/protocol.ts'
import { CONFIG_QUANT_FORMATS, CONFIG_QUANT_METHODS } from '../packages/ref/src/quant.ts'

const page = (name: string): string => readFileSync(fileURLToPath(new URL(`../docs/${name}`, import.meta.url)), 'utf8')

/** The text of one clause, up to the next one. */
function clause(text: string, id: string): string {
  const [, rest] = text.split(new RegExp(`^\\*\\*${id.replace('.', '\\.')}\\*\\*`, 'm'))
  if (rest === undefined) throw new Error(`there is no clause ${id}`)
  return rest.split(/^(?:\*\*[a-z]+\.\d+\*\*|#)/m)[0] as string
}

test('the codes of the contract are those of the protocol, with their statuses', () => {
  const rows = [...clause(page('errors.md'), 'err.2').matchAll(/^\| `(E_[A-Z_]+)` +\| ([\w ]+?) +\|/gm)].map(
    ([, code, status]) => [code, status]
  )
  const codes = Object.entries(ERROR_CODES).map(([code, { status }]) => [
    code,
    status === 'job' ? 'job only' : String(status)
  ])
  expect(rows.sort()).toEqual(codes.sort())
})

test('the words of a config.json are the recognized ones', () => {
  const words = [...clause(page('recognition.md'), 'rec.17').matchAll(/`([a-z0-9_\-\s]+)`/g)].map((match) =>
    (match[1] as string).trim().split(/\s+/)
  )
  expect(words.slice(0, 2)).toEqual([[...CONFIG_QUANT_METHODS], [...CONFIG_QUANT_FORMATS]])
})
