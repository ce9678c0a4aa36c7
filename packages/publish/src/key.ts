/** A key as part of a URL: everything but letters, digits and `-._~` percent-encoded, so that `+` is `%2B` (BEP 19 on object stores). */
export const encodeKey = (key: string): string => key.split('/').map(encodeSegment).join('/')

const encodeSegment = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`)

/** The address of a key below a base. */
export const urlOf = (base: string, key: string): string => `${base.endsWith('/') ? base : `${base}/`}${encodeKey(key)}`
