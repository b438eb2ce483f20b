// Every panel, one line each, in reading order.
import '../header/header_panel.js';
import './span/span_feature.js';
import './graph/graph_panel.js';
import './selection/holders_panel.js';
import './memory/memory_panel.js';
import './streams/streams_panel.js';
import './selection/selection_panel.js';
import './search/search_feature.js';
import './plans/plans_feature.js';
import './partition/partition_feature.js';
import './run/run_feature.js';
