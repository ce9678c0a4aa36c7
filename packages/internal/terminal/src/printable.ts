/** C0, DEL and C1 (so every escape sequence), the separators of lines, and the marks that turn text around. */
const CONTROLS = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu

/** Text that controls no terminal: each control character is U+FFFD, one column for one. */
export const printable = (text: string): string => text.replace(CONTROLS, '\ufffd')

/** Text that controls no terminal, its control characters as escapes of JSON. */
export const escaped = (text: string): string =>
  text.replace(CONTROLS, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`)

/**
 * A JSON document on one line without raw control characters: JSON itself allows U+007F to U+009F, which terminals
 * interpret. Parsers read the escapes as the same text.
 */
export const jsonText = (value: unknown): string => escaped(JSON.stringify(value))
