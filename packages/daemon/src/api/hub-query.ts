import type { SearchQuery } from '@svc/client/protocol'
import type { HubQuery } from '@svc/hub'
import { DaemonError } from '../errors.ts'

const MAX_WORDS_CHARS = 200
const MAX_CURSOR_CHARS = 4_096

/** The query of GET /v1/search. @throws DaemonError `E_BAD_REQUEST` naming the parameter */
export function hubQueryOf({ q, format, license, cursor, ...more }: SearchQuery): HubQuery {
  if (q.length > MAX_WORDS_CHARS) throw refused('q', `it has more than ${MAX_WORDS_CHARS} characters`)
  if (license !== undefined && !/^[\w.+-]{1,64}$/.test(license))
    throw refused('license', 'it is not the name of a licence')
  if (cursor !== undefined && cursor.length > MAX_CURSOR_CHARS)
    throw refused('cursor', 'it is not a cursor of this API')
  return {
    words: q,
    formats: format === undefined ? [] : [format as 'gguf' | 'safetensors'],
    license,
    minParameters: wholeOf('minParameters', more.minParameters, 1e15),
    maxParameters: wholeOf('maxParameters', more.maxParameters, 1e15),
    limit: wholeOf('limit', more.limit, 100),
    cursor
  }
}

const refused = (name: string, why: string): DaemonError =>
  new DaemonError('E_BAD_REQUEST', `the query parameter "${name}": ${why}`)

function wholeOf(name: string, text: string | undefined, most: number): number | undefined {
  if (text === undefined) return undefined
  const number = /^\d{1,16}$/.test(text) ? Number(text) : 0
  if (number >= 1 && number <= most) return number
  throw refused(name, `it is a whole number from 1 to ${most}`)
}
