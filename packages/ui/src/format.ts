import { TEXTS } from './texts.ts'

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** `1.5 GiB`; whole bytes below 1 KiB. */
export function formatBytes(sizeBytes: number): string {
  const unit = Math.min(UNITS.length - 1, sizeBytes < 1 ? 0 : Math.floor(Math.log2(sizeBytes) / 10))
  const value = sizeBytes / 1024 ** unit
  return `${unit === 0 ? value : value.toFixed(value < 100 ? 1 : 0)} ${UNITS[unit]}`
}

export const formatRate = (bytesPerSecond: number): string => `${formatBytes(Math.round(bytesPerSecond))}/s`

/** `7.6B`, `12.3M`, `950`. */
export const formatCount = (count: number): string => COMPACT.format(count)

/** `2 h 5 min`, `3 min 7 s`, `12 s`. */
export function formatSeconds(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds))
  if (whole >= 3600) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`
  return whole >= 60 ? `${Math.floor(whole / 60)} min ${whole % 60} s` : `${whole} s`
}

const AGO = new Intl.RelativeTimeFormat('en')
const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })

/** `3 days ago`; empty without a time. */
export function formatSince(at: string | undefined, nowMs: number): string {
  if (at === undefined) return ''
  const seconds = Math.max(0, (nowMs - Date.parse(at)) / 1000)
  if (seconds < 60) return TEXTS.justNow
  const [unit, length] =
    seconds < 3600
      ? (['minute', 60] as const)
      : seconds < 86_400
        ? (['hour', 3600] as const)
        : seconds < 60 * 86_400
          ? (['day', 86_400] as const)
          : (['month', 30.4 * 86_400] as const)
  return AGO.format(-Math.floor(seconds / length), unit)
}
