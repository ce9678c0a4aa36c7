// webtorrent ships no types: what is used of it stands in client.ts.

declare module 'webtorrent' {
  const WebTorrent: import('./client.ts').WebTorrentConstructor
  export default WebTorrent
}
