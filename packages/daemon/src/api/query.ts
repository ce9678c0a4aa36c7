import { DaemonError } from '../errors.ts'

/**
 * One parameter of a query string, decoded as HTML forms are: `+` is a space, `%XX` are UTF-8 bytes.
 * @throws DaemonError `E_BAD_REQUEST` when it is absent, empty, given twice, or not decodable
 */
export function requiredParameter(url: string, name: string): string {
  const mark = url.indexOf('?')
  let found: string | undefined
  if (mark >= 0) {
    for (const pair of url.slice(mark + 1).split('&')) {
      const equals = pair.indexOf('=')
      if (decode(equals < 0 ? pair : pair.slice(0, equals), name) !== name) continue
      if (found !== undefined) throw new DaemonError('E_BAD_REQUEST', `the query parameter "${name}" is given twice`)
      found = equals < 0 ? '' : decode(pair.slice(equals + 1), name)
    }
  }
  if (found === undefined || found === '')
    throw new DaemonError('E_BAD_REQUEST', `the query parameter "${name}" is missing`)
  return found
}

const decode = (text: string, name: string): string => {
  if (!text.includes('%') && !text.includes('+')) return text
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch (cause) {
    throw new DaemonError('E_BAD_REQUEST', `the query string is not percent-encoded UTF-8 (looking for "${name}")`, {
      cause
    })
  }
}
