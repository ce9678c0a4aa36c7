/** Percent-encodes a key for a URL, all but unreserved characters: object stores read a literal `+` as a space. */
export const encodeKey = (key: string): string => key.split('/').map(encodeSegment).join('/')

const encodeSegment = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`)

export const urlOf = (base: string, key: string): string => `${base.endsWith('/') ? base : `${base}/`}${encodeKey(key)}`
