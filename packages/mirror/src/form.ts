import type { IncomingMessage } from 'node:http'
import { jsonExcess } from '@svc/internal-http'
import { BodyError, readRequestBody } from '@svc/internal-server'

/** Enough for 1,000 long paths; the hub's clients request fewer. */
const MAX_BODY_BYTES = 256 << 10
const MAX_PATHS = 1_000
/** An object with a list and a few other fields. */
const BOUNDS = { depth: 4, values: MAX_PATHS + 16, keys: 16 }

/**
 * The list `paths` in a body, JSON or a form as the hub's clients send it, without duplicates; undefined when it is
 * invalid, too large or incomplete. Anybody can send a body, so its cost is limited before it is parsed.
 */
export async function readForm(request: IncomingMessage): Promise<readonly string[] | undefined> {
  const isJson = request.headers['content-type']?.startsWith('application/json') === true
  let bytes: Uint8Array
  try {
    bytes = (await readRequestBody(request, MAX_BODY_BYTES, isJson ? undefined : fewFields())) ?? new Uint8Array()
  } catch (error) {
    if (error instanceof BodyError) return undefined
    throw error
  }
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
  const paths = isJson ? pathsOfJson(text) : pathsOfForm(text)
  return paths === undefined || paths.length > MAX_PATHS ? undefined : [...new Set(paths)]
}

const AMPERSAND = 0x26

/** Refuses a form with too many fields before the rest of it is read. */
function fewFields(): (part: Uint8Array) => boolean {
  let ampersands = 0
  return (part) => {
    for (let at = part.indexOf(AMPERSAND); at >= 0; at = part.indexOf(AMPERSAND, at + 1))
      if (++ampersands > BOUNDS.values) return false
    return true
  }
}

function pathsOfJson(text: string): readonly string[] | undefined {
  if (jsonExcess(text, BOUNDS) !== undefined) return undefined
  try {
    const { paths } = JSON.parse(text) as { paths?: unknown }
    return Array.isArray(paths) && paths.every((path) => typeof path === 'string') ? paths : undefined
  } catch {
    return undefined
  }
}

function pathsOfForm(text: string): readonly string[] | undefined {
  const fields = text.split('&').filter((field) => field.startsWith('paths='))
  try {
    return fields.map((field) => decodeURIComponent(field.slice('paths='.length).replaceAll('+', ' ')))
  } catch {
    return undefined
  }
}
