const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

/** `1.5 GiB`; whole bytes below 1 KiB. */
export function formatBytes(sizeBytes: number): string {
  let value = sizeBytes
  let unit = 0
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024
    unit++
  }
  return unit === 0 ? `${value} B` : `${value.toFixed(value < 100 ? 1 : 0)} ${UNITS[unit]}`
}

/** `2h 05m`, `3m 07s`, `12s`. */
export function formatSeconds(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds))
  const pad = (n: number): string => `${n}`.padStart(2, '0')
  if (whole >= 3600) return `${Math.floor(whole / 3600)}h ${pad(Math.floor((whole % 3600) / 60))}m`
  if (whole >= 60) return `${Math.floor(whole / 60)}m ${pad(whole % 60)}s`
  return `${whole}s`
}

/** `1 file`, `2 files`. */
export const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? '' : 's'}`

/** A word of a command line that a person may paste into a POSIX shell. */
export const shellWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`

/** First 12 hex characters of a digest, for tables. */
export const shortDigest = (digest: string): string => digest.slice(0, 'sha256:'.length + 12)

/** `3 days ago`, for a column; empty without a time. */
export function formatSince(at: string | undefined, nowMs: number): string {
  if (at === undefined) return ''
  const seconds = Math.max(0, (nowMs - Date.parse(at)) / 1000)
  if (seconds < 60) return 'just now'
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`
  if (seconds < 86_400) return `${count(Math.floor(seconds / 3600), 'hour')} ago`
  return `${count(Math.floor(seconds / 86_400), 'day')} ago`
}

/** Whether `host:port` can be reached from this machine only. */
export const isLoopbackAddress = (address: string): boolean => /^(127\.|\[?::1\]?:|localhost:)/.test(address)

/** A listening address for people. */
export const spokenAddress = (address: string): string =>
  isLoopbackAddress(address)
    ? `${address}, from this machine only`
    : address.replace(/^(0\.0\.0\.0|\[::\]):/, 'every address of this machine, port ')

/** `2026-01-31 09:05:00`, in local time. */
export const formatTime = (at: string): string => new Date(at).toLocaleString('sv')

/** Units of {@link shortCount}. */
export const SCALES: Readonly<Record<string, number>> = { K: 1e3, M: 1e6, B: 1e9 }

/** `7.6B`, `12.3M`, `950`. */
export function shortCount(count: number): string {
  for (const [unit, scale] of Object.entries(SCALES).reverse())
    if (count >= scale) return `${(count / scale).toFixed(count < 100 * scale ? 1 : 0)}${unit}`
  return `${count}`
}
