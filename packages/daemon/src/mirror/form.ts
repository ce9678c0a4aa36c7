import type { IncomingMessage } from 'node:http'

const MAX_BODY_BYTES = 1 << 20
const MAX_PATHS = 10_000

/** The list `paths` of a body, JSON or form-encoded, as the hub's clients send it; undefined for what is none. */
export async function readForm(request: IncomingMessage): Promise<readonly string[] | undefined> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > MAX_BODY_BYTES) return undefined
    chunks.push(chunk)
  }
  const text = Buffer.concat(chunks).toString('utf8')
  const paths =
    request.headers['content-type']?.startsWith('application/json') === true
      ? pathsOf(text)
      : new URLSearchParams(text).getAll('paths')
  return paths === undefined || paths.length > MAX_PATHS ? undefined : paths
}

function pathsOf(text: string): readonly string[] | undefined {
  try {
    const { paths } = JSON.parse(text) as { paths?: unknown }
    return Array.isArray(paths) && paths.every((path) => typeof path === 'string') ? paths : undefined
  } catch {
    return undefined
  }
}
