/** Control characters that names from elsewhere could carry to a terminal become U+FFFD. */
export const printable = (text: string): string => text.replace(CONTROLS, '\ufffd')

const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g

/**
 * A JSON document on one line that carries no control character raw: JSON itself lets U+007F to U+009F pass, which terminals obey. The
 * escapes mean the same text to whoever parses it.
 */
export const jsonText = (value: unknown): string =>
  JSON.stringify(value).replace(CONTROLS, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`)
