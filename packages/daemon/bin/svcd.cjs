#!/usr/bin/env node
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
