/** Replaces control characters, which names from elsewhere could send to a terminal, with U+FFFD. */
export const printable = (text: string): string => text.replace(CONTROLS, '\ufffd')

const CONTROLS = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu

/**
 * A JSON document on one line without raw control characters: JSON itself allows U+007F to U+009F, which terminals
 * interpret. Parsers read the escapes as the same text.
 */
export const jsonText = (value: unknown): string =>
  JSON.stringify(value).replace(CONTROLS, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`)
