// Packages that ship no types: what is used of webtorrent stands in client.ts, of its wire protocol in wire-bounds.ts.

declare module 'webtorrent' {
  const WebTorrent: import('./client.ts').WebTorrentConstructor
  export default WebTorrent
}

declare module 'bittorrent-protocol' {
  const Wire: { readonly prototype: import('./wire-bounds.ts').WireInternals }
  export default Wire
}
