/**
 * Converts an IPv4 address that a dual-stack socket reports as IPv6 (`::ffff:192.0.2.1`) to IPv4; others are unchanged.
 */
export const plainAddress = (host: string): string => host.replace(/^::ffff:(?=\d+\.)/i, '')
