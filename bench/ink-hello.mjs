import { render, Text } from 'ink'
import { createElement } from 'react'

// The least that Ink can do, against which the first paint of the screen is measured.
render(createElement(Text, null, 'hello'))
