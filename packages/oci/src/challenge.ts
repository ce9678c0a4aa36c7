/** How a registry wants its callers to authenticate (`WWW-Authenticate`, RFC 9110 §11.6.1). */
export type Challenge =
  | { readonly scheme: 'basic' }
  | { readonly scheme: 'bearer'; readonly realm: string; readonly service?: string; readonly scope?: string }

const MAX_HEADER_CHARACTERS = 4_096

/** The first challenge that this client supports; undefined if there is none. */
export function parseChallenge(header: string): Challenge | undefined {
  if (header.length > MAX_HEADER_CHARACTERS) return undefined
  const match = /(?:^|,\s*)(basic|bearer)(?:\s+|$)/i.exec(header)
  if (match === null) return undefined
  if (match[1]!.toLowerCase() === 'basic') return { scheme: 'basic' }
  const parameters: Record<string, string> = {}
  const rest = header.slice(match.index + match[0].length)
  for (const [, key, quoted, plain] of rest.matchAll(/([A-Za-z_]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/g)) {
    parameters[key!.toLowerCase()] ??= quoted === undefined ? plain! : quoted.replaceAll(/\\(.)/g, '$1')
  }
  const { realm, service, scope } = parameters
  if (realm === undefined) return undefined
  return { scheme: 'bearer', realm, ...(service !== undefined && { service }), ...(scope !== undefined && { scope }) }
}
