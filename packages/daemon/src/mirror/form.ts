import type { IncomingMessage } from 'node:http'
import { BodyError, readRequestBody } from '../http/body.ts'

const MAX_BODY_BYTES = 1 << 20
const MAX_PATHS = 1_000

/**
 * The list `paths` of a body, JSON or form-encoded, as the hub's clients send it, each once; undefined for what is none, is too large or
 * broke off.
 */
export async function readForm(request: IncomingMessage): Promise<readonly string[] | undefined> {
  let bytes: Uint8Array
  try {
    bytes = (await readRequestBody(request, MAX_BODY_BYTES)) ?? new Uint8Array()
  } catch (error) {
    if (error instanceof BodyError) return undefined
    throw error
  }
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
  const paths =
    request.headers['content-type']?.startsWith('application/json') === true
      ? pathsOf(text)
      : new URLSearchParams(text).getAll('paths')
  return paths === undefined || paths.length > MAX_PATHS ? undefined : [...new Set(paths)]
}

function pathsOf(text: string): readonly string[] | undefined {
  try {
    const { paths } = JSON.parse(text) as { paths?: unknown }
    return Array.isArray(paths) && paths.every((path) => typeof path === 'string') ? paths : undefined
  } catch {
    return undefined
  }
}
