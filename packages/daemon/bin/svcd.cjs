#!/usr/bin/env sh
':' //; exec node --max-semi-space-size=1 "$0" "$@"
// The line above is for the shell, and a string for Node. By default V8's young generation grows to tens of MiB under load, in each
// thread, and stays; with 1 MiB memory follows the live data, at the same speed. Every launcher of svcd sets it.
'use strict'
// Any Node can read this file, so that one which is too old says so instead of failing on syntax that it does not know.
var pkg = require('../package.json')
var needed = /(\d+)\.(\d+)/.exec(pkg.engines.node).slice(1).map(Number)
var running = process.versions.node.split('.').map(Number)

if (running[0] > needed[0] || (running[0] === needed[0] && running[1] >= needed[1])) {
  import('../dist/main.js')
} else {
  process.stderr.write(
    'svcd: needs Node.js ' +
      needed.join('.') +
      ' or newer, and this is ' +
      process.versions.node +
      ' (' +
      process.execPath +
      ')\n' +
      'try: install a newer one (https://nodejs.org), and put it first in PATH\n'
  )
  process.exit(2)
}
