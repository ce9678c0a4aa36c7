import type { TObject } from 'typebox'
import { DaemonError } from '../errors.ts'

/**
 * The query parameters in the schema, decoded like HTML forms; others are ignored. @throws DaemonError `E_BAD_REQUEST`
 * when one is absent, empty, repeated, malformed, or not among the schema's values
 */
export function readQuery(schema: TObject, url: string): Readonly<Record<string, string>> {
  const values: Record<string, string> = {}
  for (const [name, { enum: words }] of Object.entries(schema.properties as Record<string, { enum?: string[] }>)) {
    const value = parameter(url, name)
    if (value !== undefined && value !== '') {
      if (words?.includes(value) === false) {
        throw new DaemonError('E_BAD_REQUEST', `the query parameter "${name}" is one of: ${words.join(', ')}`)
      }
      values[name] = value
    } else if (schema.required?.includes(name) === true) {
      throw new DaemonError('E_BAD_REQUEST', `the query parameter "${name}" is missing`)
    }
  }
  return values
}

function parameter(url: string, name: string): string | undefined {
  const mark = url.indexOf('?')
  let found: string | undefined
  if (mark < 0) return undefined
  for (const pair of url.slice(mark + 1).split('&')) {
    const equals = pair.indexOf('=')
    if (decode(equals < 0 ? pair : pair.slice(0, equals), name) !== name) continue
    if (found !== undefined) throw new DaemonError('E_BAD_REQUEST', `the query parameter "${name}" is given twice`)
    found = equals < 0 ? '' : decode(pair.slice(equals + 1), name)
  }
  return found
}

function decode(text: string, name: string): string {
  if (!text.includes('%') && !text.includes('+')) return text
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch (cause) {
    throw new DaemonError('E_BAD_REQUEST', `the query string is not percent-encoded UTF-8 (looking for "${name}")`, {
      cause
    })
  }
}
