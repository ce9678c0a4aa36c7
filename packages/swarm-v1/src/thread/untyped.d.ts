// Packages without types: client.ts declares what is used of webtorrent, wire-bounds.ts what is used of its wire
// protocol.

declare module 'webtorrent' {
  const WebTorrent: unknown
  export default WebTorrent
}

declare module 'bittorrent-protocol' {
  const Wire: unknown
  export default Wire
}
