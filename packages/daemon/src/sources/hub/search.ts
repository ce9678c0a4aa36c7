import type { SearchQuery, SearchResult } from '@svc/client/protocol'
import { DaemonError } from '../../errors.ts'
import { hubFailure } from './errors.ts'
import type { SignedHub } from './owners-hub.ts'

/** A user waits for the answer. */
const RETRY = { tries: 2, maxRateWaitMs: 20_000 }
const MAX_WORDS_CHARS = 200
const MAX_CURSOR_CHARS = 4_096

/** GET /v1/search of the hub (spec add.53). @throws DaemonError `E_BAD_REQUEST`, or as an import's listing */
export async function search(query: SearchQuery, { hub }: SignedHub): Promise<SearchResult> {
  const { q, format, license, cursor } = query
  if (q.length > MAX_WORDS_CHARS) throw refused('q', `it has more than ${MAX_WORDS_CHARS} characters`)
  if (license !== undefined && !/^[\w.+-]{1,64}$/.test(license))
    throw refused('license', 'it is not the name of a licence')
  if (cursor !== undefined && cursor.length > MAX_CURSOR_CHARS)
    throw refused('cursor', 'it is not a cursor of this API')
  try {
    const { hits, cursor: next } = await hub.search(
      {
        words: q,
        formats: format === undefined ? [] : [format as 'gguf' | 'safetensors'],
        license,
        minParameters: wholeOf('minParameters', query.minParameters, 1e15),
        maxParameters: wholeOf('maxParameters', query.maxParameters, 1e15),
        limit: wholeOf('limit', query.limit, 100),
        cursor
      },
      RETRY
    )
    const entries = hits.map(({ repoId, formats, ...hit }) => ({ repo: repoId, formats: [...formats], ...hit }))
    return { entries, ...(next !== undefined && { next }) }
  } catch (error) {
    throw hubFailure(error)
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
