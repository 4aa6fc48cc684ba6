//! The types, names and clauses of the information elements of TS 29.244 V19.5.0, one row each.

use std::fmt;

use super::registry::ie_types;

ie_types! {
    0 RESERVED "Reserved" "";
    1 CREATE_PDR "Create PDR" "7.5.2.2-1";
    2 PDI "PDI" "7.5.2.2-2";
    3 CREATE_FAR "Create FAR" "7.5.2.3-1";
    4 FORWARDING_PARAMETERS "Forwarding Parameters" "7.5.2.3-2";
    5 DUPLICATING_PARAMETERS "Duplicating Parameters" "7.5.2.3-3";
    6 CREATE_URR "Create URR" "7.5.2.4-1";
    7 CREATE_QER "Create QER" "7.5.2.5-1";
    8 CREATED_PDR "Created PDR" "7.5.3.2-1";
    9 UPDATE_PDR "Update PDR" "7.5.4.2-1";
    10 UPDATE_FAR "Update FAR" "7.5.4.3-1";
    11 UPDATE_FORWARDING_PARAMETERS "Update Forwarding Parameters" "7.5.4.3-2";
    12 UPDATE_BAR_REPORT_RESPONSE "Update BAR (PFCP Session Report Response)" "7.5.9.2-1";
    13 UPDATE_URR "Update URR" "7.5.4.4";
    14 UPDATE_QER "Update QER" "7.5.4.5";
    15 REMOVE_PDR "Remove PDR" "7.5.4.6";
    16 REMOVE_FAR "Remove FAR" "7.5.4.7";
    17 REMOVE_URR "Remove URR" "7.5.4.8";
    18 REMOVE_QER "Remove QER" "7.5.4.9";
    19 CAUSE "Cause" "8.2.1";
    20 SOURCE_INTERFACE "Source Interface" "8.2.2";
    21 F_TEID "F-TEID" "8.2.3";
    22 NETWORK_INSTANCE "Network Instance" "8.2.4";
    23 SDF_FILTER "SDF Filter" "8.2.5";
    24 APPLICATION_ID "Application ID" "8.2.6";
    25 GATE_STATUS "Gate Status" "8.2.7";
    26 MBR "MBR" "8.2.8";
    27 GBR "GBR" "8.2.9";
    28 QER_CORRELATION_ID "QER Correlation ID" "8.2.10";
    29 PRECEDENCE "Precedence" "8.2.11";
    30 TRANSPORT_LEVEL_MARKING "Transport Level Marking" "8.2.12";
    31 VOLUME_THRESHOLD "Volume Threshold" "8.2.13";
    32 TIME_THRESHOLD "Time Threshold" "8.2.14";
    33 MONITORING_TIME "Monitoring Time" "8.2.15";
    34 SUBSEQUENT_VOLUME_THRESHOLD "Subsequent Volume Threshold" "8.2.16";
    35 SUBSEQUENT_TIME_THRESHOLD "Subsequent Time Threshold" "8.2.17";
    36 INACTIVITY_DETECTION_TIME "Inactivity Detection Time" "8.2.18";
    37 REPORTING_TRIGGERS "Reporting Triggers" "8.2.19";
    38 REDIRECT_INFORMATION "Redirect Information" "8.2.20";
    39 REPORT_TYPE "Report Type" "8.2.21";
    40 OFFENDING_IE "Offending IE" "8.2.22";
    41 FORWARDING_POLICY "Forwarding Policy" "8.2.23";
    42 DESTINATION_INTERFACE "Destination Interface" "8.2.24";
    43 UP_FUNCTION_FEATURES "UP Function Features" "8.2.25";
    44 APPLY_ACTION "Apply Action" "8.2.26";
    45 DOWNLINK_DATA_SERVICE_INFORMATION "Downlink Data Service Information" "8.2.27";
    46 DOWNLINK_DATA_NOTIFICATION_DELAY "Downlink Data Notification Delay" "8.2.28";
    47 DL_BUFFERING_DURATION "DL Buffering Duration" "8.2.29";
    48 DL_BUFFERING_SUGGESTED_PACKET_COUNT "DL Buffering Suggested Packet Count" "8.2.30";
    49 PFCPSMREQ_FLAGS "PFCPSMReq-Flags" "8.2.31";
    50 PFCPSRRSP_FLAGS "PFCPSRRsp-Flags" "8.2.32";
    51 LOAD_CONTROL_INFORMATION "Load Control Information" "7.5.3.3-1";
    52 SEQUENCE_NUMBER "Sequence Number" "8.2.33";
    53 METRIC "Metric" "8.2.34";
    54 OVERLOAD_CONTROL_INFORMATION "Overload Control Information" "7.5.3.4-1";
    55 TIMER "Timer" "8.2.35";
    56 PDR_ID "PDR ID" "8.2.36";
    57 F_SEID "F-SEID" "8.2.37";
    58 APPLICATION_IDS_PFDS "Application ID's PFDs" "7.4.3.1-2";
    59 PFD_CONTEXT "PFD context" "7.4.3.1-3";
    60 NODE_ID "Node ID" "8.2.38";
    61 PFD_CONTENTS "PFD contents" "8.2.39";
    62 MEASUREMENT_METHOD "Measurement Method" "8.2.40";
    63 USAGE_REPORT_TRIGGER "Usage Report Trigger" "8.2.41";
    64 MEASUREMENT_PERIOD "Measurement Period" "8.2.42";
    65 FQ_CSID "FQ-CSID" "8.2.43";
    66 VOLUME_MEASUREMENT "Volume Measurement" "8.2.44";
    67 DURATION_MEASUREMENT "Duration Measurement" "8.2.45";
    68 APPLICATION_DETECTION_INFORMATION "Application Detection Information" "7.5.8.3-2";
    69 TIME_OF_FIRST_PACKET "Time of First Packet" "8.2.46";
    70 TIME_OF_LAST_PACKET "Time of Last Packet" "8.2.47";
    71 QUOTA_HOLDING_TIME "Quota Holding Time" "8.2.48";
    72 DROPPED_DL_TRAFFIC_THRESHOLD "Dropped DL Traffic Threshold" "8.2.49";
    73 VOLUME_QUOTA "Volume Quota" "8.2.50";
    74 TIME_QUOTA "Time Quota" "8.2.51";
    75 START_TIME "Start Time" "8.2.52";
    76 END_TIME "End Time" "8.2.53";
    77 QUERY_URR "Query URR" "7.5.4.10-1";
    78 USAGE_REPORT_MODIFICATION_RESPONSE
        "Usage Report (Session Modification Response)"
        "7.5.5.2-1";
    79 USAGE_REPORT_DELETION_RESPONSE "Usage Report (Session Deletion Response)" "7.5.7.2-1";
    80 USAGE_REPORT_REQUEST "Usage Report (Session Report Request)" "7.5.8.3-1";
    81 URR_ID "URR ID" "8.2.54";
    82 LINKED_URR_ID "Linked URR ID" "8.2.55";
    83 DOWNLINK_DATA_REPORT "Downlink Data Report" "7.5.8.2-1";
    84 OUTER_HEADER_CREATION "Outer Header Creation" "8.2.56";
    85 CREATE_BAR "Create BAR" "7.5.2.6-1";
    86 UPDATE_BAR "Update BAR (Session Modification Request)" "7.5.4.11-1";
    87 REMOVE_BAR "Remove BAR" "7.5.4.12-1";
    88 BAR_ID "BAR ID" "8.2.57";
    89 CP_FUNCTION_FEATURES "CP Function Features" "8.2.58";
    90 USAGE_INFORMATION "Usage Information" "8.2.59";
    91 APPLICATION_INSTANCE_ID "Application Instance ID" "8.2.60";
    92 FLOW_INFORMATION "Flow Information" "8.2.61";
    93 UE_IP_ADDRESS "UE IP Address" "8.2.62";
    94 PACKET_RATE "Packet Rate" "8.2.63";
    95 OUTER_HEADER_REMOVAL "Outer Header Removal" "8.2.64";
    96 RECOVERY_TIME_STAMP "Recovery Time Stamp" "8.2.65";
    97 DL_FLOW_LEVEL_MARKING "DL Flow Level Marking" "8.2.66";
    98 HEADER_ENRICHMENT "Header Enrichment" "8.2.67";
    99 ERROR_INDICATION_REPORT "Error Indication Report" "7.5.8.4-1";
    100 MEASUREMENT_INFORMATION "Measurement Information" "8.2.68";
    101 NODE_REPORT_TYPE "Node Report Type" "8.2.69";
    102 USER_PLANE_PATH_FAILURE_REPORT "User Plane Path Failure Report" "7.4.5.1.2-1";
    103 REMOTE_GTPU_PEER "Remote GTP-U Peer" "8.2.70";
    104 UR_SEQN "UR-SEQN" "8.2.71";
    105 UPDATE_DUPLICATING_PARAMETERS "Update Duplicating Parameters" "7.5.4.3-3";
    106 ACTIVATE_PREDEFINED_RULES "Activate Predefined Rules" "8.2.72";
    107 DEACTIVATE_PREDEFINED_RULES "Deactivate Predefined Rules" "8.2.73";
    108 FAR_ID "FAR ID" "8.2.74";
    109 QER_ID "QER ID" "8.2.75";
    110 OCI_FLAGS "OCI Flags" "8.2.76";
    111 PFCP_ASSOCIATION_RELEASE_REQUEST "PFCP Association Release Request" "8.2.77";
    112 GRACEFUL_RELEASE_PERIOD "Graceful Release Period" "8.2.78";
    113 PDN_TYPE "PDN Type" "8.2.79";
    114 FAILED_RULE_ID "Failed Rule ID" "8.2.80";
    115 TIME_QUOTA_MECHANISM "Time Quota Mechanism" "8.2.81";
    116 USER_PLANE_IP_RESOURCE_INFORMATION "User Plane IP Resource Information" "";
    117 USER_PLANE_INACTIVITY_TIMER "User Plane Inactivity Timer" "8.2.83";
    118 AGGREGATED_URRS "Aggregated URRs" "7.5.2.4-2";
    119 MULTIPLIER "Multiplier" "8.2.84";
    120 AGGREGATED_URR_ID "Aggregated URR ID" "8.2.85";
    121 SUBSEQUENT_VOLUME_QUOTA "Subsequent Volume Quota" "8.2.86";
    122 SUBSEQUENT_TIME_QUOTA "Subsequent Time Quota" "8.2.87";
    123 RQI "RQI" "8.2.88";
    124 QFI "QFI" "8.2.89";
    125 QUERY_URR_REFERENCE "Query URR Reference" "8.2.90";
    126 ADDITIONAL_USAGE_REPORTS_INFORMATION "Additional Usage Reports Information" "8.2.91";
    127 CREATE_TRAFFIC_ENDPOINT "Create Traffic Endpoint" "7.5.2.7";
    128 CREATED_TRAFFIC_ENDPOINT "Created Traffic Endpoint" "7.5.3.5";
    129 UPDATE_TRAFFIC_ENDPOINT "Update Traffic Endpoint" "7.5.4.13";
    130 REMOVE_TRAFFIC_ENDPOINT "Remove Traffic Endpoint" "7.5.4.14";
    131 TRAFFIC_ENDPOINT_ID "Traffic Endpoint ID" "8.2.92";
    132 ETHERNET_PACKET_FILTER "Ethernet Packet Filter" "7.5.2.2-3";
    133 MAC_ADDRESS "MAC address" "8.2.93";
    134 C_TAG "C-TAG" "8.2.94";
    135 S_TAG "S-TAG" "8.2.95";
    136 ETHERTYPE "Ethertype" "8.2.96";
    137 PROXYING "Proxying" "8.2.97";
    138 ETHERNET_FILTER_ID "Ethernet Filter ID" "8.2.98";
    139 ETHERNET_FILTER_PROPERTIES "Ethernet Filter Properties" "8.2.99";
    140 SUGGESTED_BUFFERING_PACKETS_COUNT "Suggested Buffering Packets Count" "8.2.100";
    141 USER_ID "User ID" "8.2.101";
    142 ETHERNET_PDU_SESSION_INFORMATION "Ethernet PDU Session Information" "8.2.102";
    143 ETHERNET_TRAFFIC_INFORMATION "Ethernet Traffic Information" "7.5.8.3-3";
    144 MAC_ADDRESSES_DETECTED "MAC Addresses Detected" "8.2.103";
    145 MAC_ADDRESSES_REMOVED "MAC Addresses Removed" "8.2.104";
    146 ETHERNET_INACTIVITY_TIMER "Ethernet Inactivity Timer" "8.2.105";
    147 ADDITIONAL_MONITORING_TIME "Additional Monitoring Time" "7.5.2.4-3";
    148 EVENT_QUOTA "Event Quota" "8.2.112";
    149 EVENT_THRESHOLD "Event Threshold" "8.2.113";
    150 SUBSEQUENT_EVENT_QUOTA "Subsequent Event Quota" "8.2.106";
    151 SUBSEQUENT_EVENT_THRESHOLD "Subsequent Event Threshold" "8.2.107";
    152 TRACE_INFORMATION "Trace Information" "8.2.108";
    153 FRAMED_ROUTE "Framed-Route" "8.2.109";
    154 FRAMED_ROUTING "Framed-Routing" "8.2.110";
    155 FRAMED_IPV6_ROUTE "Framed-IPv6-Route" "8.2.111";
    156 TIME_STAMP "Time Stamp" "8.2.114";
    157 AVERAGING_WINDOW "Averaging Window" "8.2.115";
    158 PAGING_POLICY_INDICATOR "Paging Policy Indicator" "8.2.116";
    159 APN_DNN "APN/DNN" "8.2.117";
    160 TGPP_INTERFACE_TYPE "3GPP Interface Type" "8.2.118";
    161 PFCPSRREQ_FLAGS "PFCPSRReq-Flags" "8.2.119";
    162 PFCPAUREQ_FLAGS "PFCPAUReq-Flags" "8.2.120";
    163 ACTIVATION_TIME "Activation Time" "8.2.121";
    164 DEACTIVATION_TIME "Deactivation Time" "8.2.122";
    165 CREATE_MAR "Create MAR" "7.5.2.8-1";
    166 TGPP_ACCESS_FORWARDING_ACTION_INFORMATION
        "3GPP Access Forwarding Action Information"
        "7.5.2.8-2";
    167 NON_3GPP_ACCESS_FORWARDING_ACTION_INFORMATION
        "Non-3GPP Access Forwarding Action Information"
        "7.5.2.8-3";
    168 REMOVE_MAR "Remove MAR" "7.5.4.15-1";
    169 UPDATE_MAR "Update MAR" "7.5.4.16-1";
    170 MAR_ID "MAR ID" "8.2.123";
    171 STEERING_FUNCTIONALITY "Steering Functionality" "8.2.124";
    172 STEERING_MODE "Steering Mode" "8.2.125";
    173 WEIGHT "Weight" "8.2.126";
    174 PRIORITY "Priority" "8.2.127";
    175 UPDATE_3GPP_ACCESS_FORWARDING_ACTION_INFORMATION
        "Update 3GPP Access Forwarding Action Information"
        "7.5.4.16-2";
    176 UPDATE_NON_3GPP_ACCESS_FORWARDING_ACTION_INFORMATION
        "Update Non 3GPP Access Forwarding Action Information"
        "7.5.4.16-3";
    177 UE_IP_ADDRESS_POOL_IDENTITY "UE IP address Pool Identity" "8.2.128";
    178 ALTERNATIVE_SMF_IP_ADDRESS "Alternative SMF IP Address" "8.2.129";
    179 PACKET_REPLICATION_AND_DETECTION_CARRY_ON_INFORMATION
        "Packet Replication and Detection Carry-On Information"
        "8.2.130";
    180 SMF_SET_ID "SMF Set ID" "8.2.131";
    181 QUOTA_VALIDITY_TIME "Quota Validity Time" "8.2.132";
    182 NUMBER_OF_REPORTS "Number of Reports" "8.2.133";
    183 PFCP_SESSION_RETENTION_INFORMATION
        "PFCP Session Retention Information (within PFCP Association Setup Request)"
        "7.4.4.1-2";
    184 PFCPASRSP_FLAGS "PFCPASRsp-Flags" "8.2.134";
    185 CP_PFCP_ENTITY_IP_ADDRESS "CP PFCP Entity IP Address" "8.2.135";
    186 PFCPSEREQ_FLAGS "PFCPSEReq-Flags" "8.2.136";
    187 USER_PLANE_PATH_RECOVERY_REPORT "User Plane Path Recovery Report" "7.4.5.1.3-1";
    188 IP_MULTICAST_ADDRESSING_INFO_WITHIN_PFCP_SESSION_ESTABLISHMENT_REQUEST
        "IP Multicast Addressing Info within PFCP Session Establishment Request"
        "7.5.2.2-4";
    189 JOIN_IP_MULTICAST_INFORMATION_IE_WITHIN_USAGE_REPORT
        "Join IP Multicast Information IE within Usage Report"
        "7.5.8.3-4";
    190 LEAVE_IP_MULTICAST_INFORMATION_IE_WITHIN_USAGE_REPORT
        "Leave IP Multicast Information IE within Usage Report"
        "7.5.8.3-5";
    191 IP_MULTICAST_ADDRESS "IP Multicast Address" "8.2.137";
    192 SOURCE_IP_ADDRESS "Source IP Address" "8.2.138";
    193 PACKET_RATE_STATUS "Packet Rate Status" "8.2.139";
    194 CREATE_BRIDGE_ROUTER_INFO "Create Bridge/Router Info" "8.2.140";
    195 CREATED_BRIDGE_ROUTER_INFO "Created Bridge/Router Info" "7.5.3.6-1";
    196 PORT_NUMBER "Port Number" "8.2.141";
    197 NW_TT_PORT_NUMBER "NW-TT Port Number" "8.2.142";
    198 FIVE_GS_USER_PLANE_NODE_ID "5GS User Plane Node ID" "8.2.143";
    199 TSC_MANAGEMENT_INFORMATION_IE_WITHIN_PFCP_SESSION_MODIFICATION_REQUEST
        "TSC Management Information IE within PFCP Session Modification Request"
        "7.5.4.18-1";
    200 TSC_MANAGEMENT_INFORMATION_IE_WITHIN_PFCP_SESSION_MODIFICATION_RESPONSE
        "TSC Management Information IE within PFCP Session Modification Response"
        "7.5.5.3-1";
    201 TSC_MANAGEMENT_INFORMATION_IE_WITHIN_PFCP_SESSION_REPORT_REQUEST
        "TSC Management Information IE within PFCP Session Report Request"
        "7.5.8.5-1";
    202 PORT_MANAGEMENT_INFORMATION_CONTAINER "Port Management Information Container" "8.2.144";
    203 CLOCK_DRIFT_CONTROL_INFORMATION "Clock Drift Control Information" "7.4.4.1.2-1";
    204 REQUESTED_CLOCK_DRIFT_INFORMATION "Requested Clock Drift Information" "8.2.145";
    205 CLOCK_DRIFT_REPORT "Clock Drift Report" "7.4.5.1.4-1";
    206 TIME_DOMAIN_NUMBER "Time Domain Number" "8.2.146";
    207 TIME_OFFSET_THRESHOLD "Time Offset Threshold" "8.2.147";
    208 CUMULATIVE_RATERATIO_THRESHOLD "Cumulative rateRatio Threshold" "8.2.148";
    209 TIME_OFFSET_MEASUREMENT "Time Offset Measurement" "8.2.149";
    210 CUMULATIVE_RATERATIO_MEASUREMENT "Cumulative rateRatio Measurement" "8.2.150";
    211 REMOVE_SRR "Remove SRR" "7.5.4.19-1";
    212 CREATE_SRR "Create SRR" "7.5.2.9-1";
    213 UPDATE_SRR "Update SRR" "7.5.4.21-1";
    214 SESSION_REPORT "Session Report" "7.5.8.7-1";
    215 SRR_ID "SRR ID" "8.2.151";
    216 ACCESS_AVAILABILITY_CONTROL_INFORMATION
        "Access Availability Control Information"
        "7.5.2.9-2";
    217 REQUESTED_ACCESS_AVAILABILITY_INFORMATION
        "Requested Access Availability Information"
        "8.2.152";
    218 ACCESS_AVAILABILITY_REPORT "Access Availability Report" "7.5.8.6-2";
    219 ACCESS_AVAILABILITY_INFORMATION "Access Availability Information" "8.2.153";
    220 PROVIDE_ATSSS_CONTROL_INFORMATION "Provide ATSSS Control Information" "7.5.2.10-1";
    221 ATSSS_CONTROL_PARAMETERS "ATSSS Control Parameters" "7.5.3.7-1";
    222 MPTCP_CONTROL_INFORMATION "MPTCP Control Information" "8.2.154";
    223 ATSSS_LL_CONTROL_INFORMATION "ATSSS-LL Control Information" "8.2.155";
    224 PMF_CONTROL_INFORMATION "PMF Control Information" "8.2.156";
    225 MPTCP_PARAMETERS "MPTCP Parameters" "7.5.3.7-2";
    226 ATSSS_LL_PARAMETERS "ATSSS-LL Parameters" "7.5.3.7-3";
    227 PMF_PARAMETERS "PMF Parameters" "7.5.3.7-4";
    228 MPTCP_ADDRESS_INFORMATION "MPTCP Address Information" "8.2.157";
    229 LINK_SPECIFIC_MULTIPATH_IP_ADDRESS "Link-Specific Multipath IP Address" "8.2.158";
    230 PMF_ADDRESS_INFORMATION "PMF Address Information" "8.2.159";
    231 ATSSS_LL_INFORMATION "ATSSS-LL Information" "8.2.160";
    232 DATA_NETWORK_ACCESS_IDENTIFIER "Data Network Access Identifier" "8.2.161";
    233 UE_IP_ADDRESS_POOL_INFORMATION "UE IP address Pool Information" "7.4.4.1-3";
    234 AVERAGE_PACKET_DELAY "Average Packet Delay" "8.2.162";
    235 MINIMUM_PACKET_DELAY "Minimum Packet Delay" "8.2.163";
    236 MAXIMUM_PACKET_DELAY "Maximum Packet Delay" "8.2.164";
    237 QOS_REPORT_TRIGGER "QoS Report Trigger" "8.2.165";
    238 GTPU_PATH_QOS_CONTROL_INFORMATION "GTP-U Path QoS Control Information" "7.4.4.1.3-1";
    239 GTPU_PATH_QOS_REPORT "GTP-U Path QoS Report (PFCP Node Report Request)" "7.4.5.1.5-1";
    240 QOS_INFORMATION_IN_GTPU_PATH_QOS_REPORT
        "QoS Information in GTP-U Path QoS Report"
        "7.4.5.1.6-1";
    241 GTPU_PATH_INTERFACE_TYPE "GTP-U Path Interface Type" "8.2.166";
    242 QOS_MONITORING_PER_QOS_FLOW_CONTROL_INFORMATION
        "QoS Monitoring per QoS flow Control Information"
        "7.5.2.9-3";
    243 REQUESTED_QOS_MONITORING "Requested QoS Monitoring" "8.2.167";
    244 REPORTING_FREQUENCY "Reporting Frequency" "8.2.168";
    245 PACKET_DELAY_THRESHOLDS "Packet Delay Thresholds" "8.2.169";
    246 MINIMUM_WAIT_TIME "Minimum Wait Time" "8.2.170";
    247 QOS_MONITORING_REPORT "QoS Monitoring Report" "7.5.8.6-3";
    248 QOS_MONITORING_MEASUREMENT "QoS Monitoring Measurement" "8.2.171";
    249 MT_EDT_CONTROL_INFORMATION "MT-EDT Control Information" "8.2.172";
    250 DL_DATA_PACKETS_SIZE "DL Data Packets Size" "8.2.173";
    251 QER_CONTROL_INDICATIONS "QER Control Indications" "8.2.174";
    252 PACKET_RATE_STATUS_REPORT "Packet Rate Status Report" "7.5.7.1-2";
    253 NF_INSTANCE_ID "NF Instance ID" "8.2.175";
    254 ETHERNET_CONTEXT_INFORMATION "Ethernet Context Information" "7.5.4.21-1";
    255 REDUNDANT_TRANSMISSION_PARAMETERS "Redundant Transmission Parameters" "7.5.2.2-5";
    256 UPDATED_PDR "Updated PDR" "7.5.5.5-1";
    257 S_NSSAI "S-NSSAI" "8.2.176";
    258 IP_VERSION "IP version" "8.2.177";
    259 PFCPASREQ_FLAGS "PFCPASReq-Flags" "8.2.178";
    260 DATA_STATUS "Data Status" "8.2.179";
    261 PROVIDE_RDS_CONFIGURATION_INFORMATION "Provide RDS configuration information" "7.5.2.11-1";
    262 RDS_CONFIGURATION_INFORMATION "RDS configuration information" "8.2.180";
    263 QUERY_PACKET_RATE_STATUS_IE_WITHIN_PFCP_SESSION_MODIFICATION_REQUEST
        "Query Packet Rate Status IE within PFCP Session Modification Request"
        "7.5.4.22-1";
    264 PACKET_RATE_STATUS_REPORT_IE_WITHIN_PFCP_SESSION_MODIFICATION_RESPONSE
        "Packet Rate Status Report IE within PFCP Session Modification Response"
        "7.5.5.4-1";
    265 MULTIPATH_APPLICABLE_INDICATION "Multipath Applicable Indication" "8.2.181";
    266 USER_PLANE_NODE_MANAGEMENT_INFORMATION_CONTAINER
        "User Plane Node Management Information Container"
        "8.2.182";
    267 UE_IP_ADDRESS_USAGE_INFORMATION "UE IP Address Usage Information" "7.4.4.3.1-1";
    268 NUMBER_OF_UE_IP_ADDRESSES "Number of UE IP Addresses" "8.2.183";
    269 VALIDITY_TIMER "Validity Timer" "8.2.184";
    270 REDUNDANT_TRANSMISSION_FORWARDING_PARAMETERS
        "Redundant Transmission Forwarding Parameters"
        "7.5.2.3-4";
    271 TRANSPORT_DELAY_REPORTING "Transport Delay Reporting" "7.5.2.2-6";
    272 PARTIAL_FAILURE_INFORMATION "Partial Failure Information" "7.5.3.1-2";
    273 SPARE_273 "Spare" "";
    274 OFFENDING_IE_INFORMATION "Offending IE Information" "8.2.185";
    275 RAT_TYPE "RAT Type" "8.2.186";
    276 L2TP_TUNNEL_INFORMATION "L2TP Tunnel Information" "7.5.2.1-2";
    277 L2TP_SESSION_INFORMATION "L2TP Session Information" "7.5.2.1-3";
    278 L2TP_USER_AUTHENTICATION "L2TP User Authentication" "8.2.187";
    279 CREATED_L2TP_SESSION "Created L2TP Session" "7.5.3.1-3";
    280 LNS_ADDRESS "LNS Address" "8.2.188";
    281 TUNNEL_PREFERENCE "Tunnel Preference" "8.2.189";
    282 CALLING_NUMBER "Calling Number" "8.2.190";
    283 CALLED_NUMBER "Called Number" "8.2.191";
    284 L2TP_SESSION_INDICATIONS "L2TP Session Indications" "8.2.192";
    285 DNS_SERVER_ADDRESS "DNS Server Address" "8.2.193";
    286 NBNS_SERVER_ADDRESS "NBNS Server Address" "8.2.194";
    287 MAXIMUM_RECEIVE_UNIT "Maximum Receive Unit" "8.2.195";
    288 THRESHOLDS "Thresholds" "8.2.196";
    289 STEERING_MODE_INDICATOR "Steering Mode Indicator" "8.2.197";
    290 PFCP_SESSION_CHANGE_INFO "PFCP Session Change Info" "7.4.7.1-2";
    291 GROUP_ID "Group ID" "8.2.198";
    292 CP_IP_ADDRESS "CP IP Address" "8.2.199";
    293 IP_ADDRESS_AND_PORT_NUMBER_REPLACEMENT "IP Address and Port number Replacement" "8.2.200";
    294 DNS_QUERY_RESPONSE_FILTER "DNS Query/Response Filter" "8.2.201";
    295 DIRECT_REPORTING_INFORMATION "Direct Reporting Information" "7.5.2.9-4";
    296 EVENT_NOTIFICATION_URI "Event Notification URI" "8.2.202";
    297 NOTIFICATION_CORRELATION_ID "Notification Correlation ID" "8.2.203";
    298 REPORTING_FLAGS "Reporting Flags" "8.2.204";
    299 PREDEFINED_RULES_NAME "Predefined Rules Name" "8.2.205";
    300 MBS_SESSION_N4MB_CONTROL_INFORMATION "MBS Session N4mb Control Information" "7.5.2.1-4";
    301 MBS_MULTICAST_PARAMETERS "MBS Multicast Parameters" "7.5.2.3-5";
    302 ADD_MBS_UNICAST_PARAMETERS "Add MBS Unicast Parameters" "7.5.2.3-6";
    303 MBS_SESSION_N4MB_INFORMATION "MBS Session N4mb Information" "7.5.3.1-4";
    304 REMOVE_MBS_UNICAST_PARAMETERS "Remove MBS Unicast Parameters" "7.5.4.3-4";
    305 MBS_SESSION_IDENTIFIER "MBS Session Identifier" "8.2.206";
    306 MULTICAST_TRANSPORT_INFORMATION "Multicast Transport Information" "8.2.207";
    307 MBSN4MBREQ_FLAGS "MBSN4mbReq-Flags" "8.2.208";
    308 LOCAL_INGRESS_TUNNEL "Local Ingress Tunnel" "8.2.209";
    309 MBS_UNICAST_PARAMETERS_ID "MBS Unicast Parameters ID" "8.2.210";
    310 MBS_SESSION_N4_CONTROL_INFORMATION "MBS Session N4 Control Information" "7.5.2.1-5";
    311 MBS_SESSION_N4_INFORMATION "MBS Session N4 Information" "7.5.3.1-5";
    312 MBSN4RESP_FLAGS "MBSN4Resp-Flags" "8.2.211";
    313 TUNNEL_PASSWORD "Tunnel Password" "8.2.212";
    314 AREA_SESSION_ID "Area Session ID" "8.2.213";
    315 PEER_UP_RESTART_REPORT "Peer UP Restart Report" "7.4.5.1.7";
    316 DSCP_TO_PPI_CONTROL_INFORMATION "DSCP to PPI Control Information" "7.5.2.1-6";
    317 DSCP_TO_PPI_MAPPING_INFORMATION "DSCP to PPI Mapping Information" "8.2.214";
    318 PFCPSDRSP_FLAGS "PFCPSDRsp-Flags" "8.2.215";
    319 QER_INDICATIONS "QER Indications" "8.2.216";
    320 VENDOR_SPECIFIC_NODE_REPORT_TYPE "Vendor-Specific Node Report Type" "8.2.217";
    321 CONFIGURED_TIME_DOMAIN "Configured Time Domain" "8.2.218";
    322 METADATA "Metadata" "8.2.219" R19;
    323 TRAFFIC_PARAMETER_MEASUREMENT_CONTROL_INFORMATION
        "Traffic Parameter Measurement Control Information"
        "7.5.2.9-5" R19;
    324 TRAFFIC_PARAMETER_MEASUREMENT_REPORT "Traffic Parameter Measurement Report" "7.5.8.6-4" R19;
    325 TRAFFIC_PARAMETER_THRESHOLD "Traffic Parameter Threshold" "8.2.220" R19;
    326 DL_PERIODICITY "DL Periodicity" "8.2.221" R19;
    327 N6_JITTER_MEASUREMENT "N6 Jitter Measurement" "8.2.222" R19;
    328 TRAFFIC_PARAMETER_MEASUREMENT_INDICATION
        "Traffic Parameter Measurement Indication"
        "8.2.223" R19;
    329 UL_PERIODICITY "UL Periodicity" "8.2.224" R19;
    330 MPQUIC_CONTROL_INFORMATION "MPQUIC Control Information" "8.2.225" R19;
    331 MPQUIC_PARAMETERS "MPQUIC Parameters" "7.5.3.7-5" R19;
    332 MPQUIC_ADDRESS_INFORMATION "MPQUIC Address Information" "8.2.226" R19;
    333 TRANSPORT_MODE "Transport Mode" "8.2.227" R19;
    334 PROTOCOL_DESCRIPTION "Protocol Description" "7.5.2.2-7" R19;
    335 REPORTING_SUGGESTION_INFO "Reporting Suggestion Info" "8.2.229" R19;
    336 TL_CONTAINER "TL-Container" "8.2.230" R19;
    337 MEASUREMENT_INDICATION "Measurement Indication" "8.2.231" R19;
    338 HPLMN_S_NSSAI "HPLMN S-NSSAI" "8.2.232" R19;
    339 MEDIA_TRANSPORT_PROTOCOL "Media Transport Protocol" "8.2.233" R19;
    340 RTP_HEADER_EXTENSION_INFORMATION "RTP Header Extension Information" "7.5.2.2-8" R19;
    341 RTP_PAYLOAD_INFORMATION "RTP Payload Information" "7.5.2.2-9" R19;
    342 RTP_HEADER_EXTENSION_TYPE "RTP Header Extension Type" "8.2.234" R19;
    343 RTP_HEADER_EXTENSION_ID "RTP Header Extension ID" "8.2.235" R19;
    344 RTP_PAYLOAD_TYPE "RTP Payload Type" "8.2.236" R19;
    345 RTP_PAYLOAD_FORMAT "RTP Payload Format" "8.2.237" R19;
    346 EXTENDED_DL_BUFFERING_NOTIFICATION_POLICY
        "Extended DL Buffering Notification Policy"
        "8.2.238" R19;
    347 MT_SDT_CONTROL_INFORMATION "MT-SDT Control Information" "8.2.239" R19;
    348 REPORTING_THRESHOLDS "Reporting Thresholds" "8.2.240" R19;
    349 RTP_HEADER_EXTENSION_ADDITIONAL_INFORMATION
        "RTP Header Extension Additional Information"
        "8.2.241" R19;
    350 MAPPED_N6_IP_ADDRESS "Mapped N6 IP Address" "8.2.242" R19;
    351 N6_ROUTING_INFORMATION "N6 Routing Information" "8.2.243" R19;
    352 URI "URI" "8.2.244" R19;
    353 UE_LEVEL_MEASUREMENTS_CONFIGURATION "UE Level Measurements Configuration" "8.2.245" R19;
    354 N6_DELAY_MEASUREMENT_PROTOCOLS "N6 Delay Measurement Protocols" "8.2.246" R19;
    355 N6_DELAY_MEASUREMENT_CONTROL_INFORMATION
        "N6 Delay Measurement Control Information"
        "7.4.4.1.4-1" R19;
    356 N6_DELAY_MEASUREMENT_REPORT
        "N6 Delay Measurement Report (PFCP Node Report Request)"
        "7.4.5.1.8-1" R19;
    357 N6_DELAY_MEASUREMENT_INFORMATION "N6 Delay Measurement Information" "8.2.247" R19;
    358 MEASUREMENT_ENDPOINT_ADDRESS "Measurement Endpoint Address" "8.2.248" R19;
    359 OPERATOR_CONFIGURABLE_UPF_CAPABILITY "Operator Configurable UPF Capability" "8.2.249" R19;
    360 PACKET_INSPECTION_FUNCTIONALITY "Packet Inspection functionality" "8.2.250" R19;
    361 HEADER_HANDLING_CONTROL_RULE "Header Handling Control Rule" "7.5.2.3-7" R19;
    362 HEADER_HANDLING_REPORTING_CONTROL_INFO
        "Header Handling Reporting Control Info"
        "7.5.2.3-8" R19;
    363 HEADER_HANDLING_CONTROL_INFORMATION "Header Handling Control information" "7.5.2.3-9" R19;
    364 HEADER_DETECTION_REFERENCE "Header Detection Reference" "8.2.251" R19;
    365 HEADER_DETECTION_SUPPORT_INFORMATION "Header Detection Support Information" "8.2.252" R19;
    366 REPORTING_ENDPOINT_ID "Reporting Endpoint ID" "8.2.253" R19;
    367 HEADER_HANDLING_CONTROL_REFERENCE "Header Handling Control Reference" "8.2.254" R19;
    368 HEADER_HANDLING_ACTION "Header Handling Action" "8.2.255" R19;
    369 HEADER_INFORMATION "Header Information" "8.2.256" R19;
    370 HEADER_VALUE "Header Value" "8.2.257" R19;
    371 HEADER_HANDLING_CONDITION "Header Handling Condition" "8.2.258" R19;
    372 HEADER_HANDLING_CONTROL_ID "Header Handling Control ID" "8.2.259" R19;
    373 HEADER_HANDLING_CONTROL_RULE_ID "Header Handling Control Rule ID" "8.2.260" R19;
    374 ON_PATH_N6_CONNECTION_INFORMATION "On-path N6 Connection Information" "8.2.261" R19;
    375 MEASUREMENT_REPORTING_TYPE "Measurement Reporting Type" "8.2.262" R19;
    376 N6_DELAY_MEASUREMENT_FAILURE_INFORMATION
        "N6 Delay Measurement Failure Information"
        "8.2.263" R19;
    377 N6_DELAY_MEASUREMENT_CONTROL_INFORMATION_ID
        "N6 Delay Measurement Control Information ID"
        "8.2.264" R19;
    378 PROTOCOL_SPECIFIC_CONFIGURATION_PARAMETERS
        "Protocol Specific Configuration Parameters"
        "7.4.4.1.4-2" R19;
    379 MEASUREMENT_ENDPOINT_PORT_NUMBER "Measurement Endpoint Port Number" "8.2.265" R19;
    380 HEADER_HANDLING_REPORTING_INDICATION "Header Handling Reporting Indication" "8.2.266" R19;
    381 UNUSED_381 "Can be used" "" R19;
    382 SMF_CHANGE_REASON "SMF Change Reason" "8.2.267" R19;
    383 EXTENDED_TRANSPORT_LEVEL_MARKING "Extended Transport Level Marking" "7.5.2.3-10" R19;
    384 PDU_SET_IMPORTANCE "PDU Set Importance" "8.2.268" R19;
    385 MOQ_CONTROL_INFORMATION "MoQ Control Information" "8.2.269" R19;
    386 MOQ_INFORMATION "MoQ Information" "7.3.5.1-6" R19;
    387 MOQ_RELAY_IP_ADDRESS "MoQ Relay IP Address" "8.2.270" R19;
    388 MEDIA_RELATED_INFORMATION_TRANSFER_INFO
        "Media Related Information Transfer Info"
        "8.2.271" R19;
    389 REPORTING_CONTROL_INFORMATION "Reporting Control Information" "8.2.272" R19;
    390 SECURITY_MODE_STAMP "Security Mode (STAMP)" "8.2.273" R19;
    391 HMAC_KEY_STAMP "HMAC Key (STAMP)" "8.2.274" R19;
    392 SECURITY_MODE_OWAMP_TWAMP "Security Mode (OWAMP or TWAMP)" "8.2.275" R19;
    393 KEY_ID_AND_SHARED_SECRET "Key ID and Shared Secret (OWAMP or TWAMP)" "8.2.276" R19;
    394 REMAINING_DATA_REPORTING_INDICATION "Remaining Data Reporting Indication" "8.2.277" R19;
    395 EXPEDITED_TRANSFER_INDICATION "Expedited Transfer Indication" "8.2.278" R19;
    396 SESSION_REFLECTOR_MODE_STAMP "Session Reflector Mode (STAMP)" "8.2.279" R19;
    397 PFD_PARTIAL_FAILURE_INFORMATION "PFD Partial Failure Information" "7.4.3.2-2" R19;
    398 TRANSPORT_LEVEL_MARKING_INDICATIONS "Transport Level Marking Indications" "8.2.280" R19;
    399 REDUNDANT_N3_N9_TRANSMISSION_INFORMATION
        "Redundant N3/N9 Transmission Information"
        "7.5.8.6-5" R19;
    400 LOCAL_N3_N9_TUNNEL_INFORMATION "Local N3/N9 Tunnel Information" "7.5.8.6-6" R19;
    401 REMOTE_N3_N9_TUNNEL_INFORMATION "Remote N3/N9 Tunnel Information" "7.5.8.6-7" R19;
    402 BINDING_INDICATION "Binding Indication" "8.2.281" R19;
}

impl IeType {
    /// Returns the name that TS 29.244 gives the type.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        self.row().map(|row| row.0)
    }

    /// Returns the clause or table of TS 29.244 that defines the type.
    #[must_use]
    pub fn clause(self) -> Option<&'static str> {
        self.row()
            .map(|row| row.1)
            .filter(|clause| !clause.is_empty())
    }

    /// Returns `true` if the type is vendor-specific. The value of such an element starts with an
    /// enterprise number.
    #[must_use]
    pub const fn is_vendor(self) -> bool {
        self.0 & 0x8000 != 0
    }

    fn row(self) -> Option<&'static (&'static str, &'static str)> {
        ROWS.get(usize::from(self.0))
            .filter(|row| !row.0.is_empty())
    }
}

impl fmt::Display for IeType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "IE {}", self.0),
        }
    }
}

impl fmt::Debug for IeType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IeType({}", self.0)?;
        match self.name() {
            Some(name) => write!(f, " {name})"),
            None => f.write_str(")"),
        }
    }
}
