/**
 * Percent-encodes all but unreserved characters (RFC 3986 §2.3), as signatures of object stores require: these read a literal `+` as a
 * space.
 */
export const encodeSegment = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`)

/** The same for each segment of a path. */
export const encodePath = (path: string): string => path.split('/').map(encodeSegment).join('/')
