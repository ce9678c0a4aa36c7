// Packages that ship no types: what is used of webtorrent stands in client.ts, of its wire protocol in wire-bounds.ts.

declare module 'webtorrent' {
  const WebTorrent: unknown
  export default WebTorrent
}

declare module 'bittorrent-protocol' {
  const Wire: unknown
  export default Wire
}
