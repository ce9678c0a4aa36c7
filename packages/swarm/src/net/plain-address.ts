/** An IPv4 address that a dual-stack socket shows as IPv6 (`::ffff:192.0.2.1`), as IPv4; others as they are. */
export const plainAddress = (host: string): string => host.replace(/^::ffff:(?=\d+\.)/i, '')
